//! GPT-2 writes bytes as printable characters: the table between the two.

/// The character that stands for each byte: itself where it is printable in Latin-1, else the next free one from U+0100.
pub(super) fn characters() -> [char; 256] {
    let mut table = ['\0'; 256];
    let mut free = 0x100;
    for byte in 0..=255_u8 {
        let printable = matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        table[usize::from(byte)] = if printable {
            char::from(byte)
        } else {
            free += 1;
            // 68 characters from U+0100 on: all of them are letters
            char::from_u32(free - 1).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
    }
    table
}

/// The bytes that a piece of such characters stands for; absent where it has another character.
pub(super) fn spelled(piece: &str, table: &[char; 256]) -> Option<Vec<u8>> {
    piece.chars().map(|c| table.iter().position(|&t| t == c).map(|b| b as u8)).collect()
}
