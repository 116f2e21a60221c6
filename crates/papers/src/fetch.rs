//! Data sets from the web: by the system's `curl`, so that no network code of ours runs beside private data. A part
//! that was fetched stays, and the next try goes on from there; a file gets its name when its checksum is right. Files
//! that are there already are checked too.

use super::data::Set;
use leakscope::{Failure, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of a data set.
struct Remote {
    /// Its name at the address.
    name: &'static str,
    sha256: &'static str,
    /// Of an archive: the files that are taken out of it, with their sizes.
    holds: &'static [(&'static str, u64)],
}

/// 10,000 images of 3,073 bytes.
const BATCH: u64 = 30_730_000;
const BATCHES: [(&str, u64); 6] = [
    ("data_batch_1.bin", BATCH),
    ("data_batch_2.bin", BATCH),
    ("data_batch_3.bin", BATCH),
    ("data_batch_4.bin", BATCH),
    ("data_batch_5.bin", BATCH),
    ("test_batch.bin", BATCH),
];

/// Where a data set is published, and its files.
fn remote(set: Set) -> Option<(&'static str, &'static [Remote])> {
    match set {
        Set::Mnist => Some((
            "https://storage.googleapis.com/cvdf-datasets/mnist",
            &[
                Remote {
                    name: "train-images-idx3-ubyte.gz",
                    sha256: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                    holds: &[],
                },
                Remote {
                    name: "train-labels-idx1-ubyte.gz",
                    sha256: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                    holds: &[],
                },
                Remote {
                    name: "t10k-images-idx3-ubyte.gz",
                    sha256: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                    holds: &[],
                },
                Remote {
                    name: "t10k-labels-idx1-ubyte.gz",
                    sha256: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                    holds: &[],
                },
            ],
        )),
        Set::Cifar => Some((
            "https://www.cs.toronto.edu/~kriz",
            &[Remote {
                name: "cifar-10-binary.tar.gz",
                sha256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                holds: &BATCHES,
            }],
        )),
        Set::Adult => Some((
            "https://archive.ics.uci.edu/ml/machine-learning-databases/adult",
            &[
                Remote {
                    name: "adult.data",
                    sha256: "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                    holds: &[],
                },
                Remote {
                    name: "adult.test",
                    sha256: "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                    holds: &[],
                },
            ],
        )),
        Set::Warfarin | Set::Pneumonia | Set::Stories => None,
    }
}

/// Fetches what is missing of a data set into its folder inside `out`.
pub fn get(set: Set, out: &Path, from: Option<&str>, say: impl Fn(&str)) -> Result<()> {
    let Some((published, files)) = remote(set) else {
        return Err(Failure::Message(format!(
            "{} cannot be fetched by itself. It is published {}. Put it into {}",
            set.title(),
            set.published(),
            out.join(set.folder()).display()
        )));
    };
    let address = from.unwrap_or(published).trim_end_matches('/');
    let folder = out.join(set.folder());
    fs::create_dir_all(&folder)
        .map_err(|e| Failure::option("out", format!("cannot write to {}: {e}", folder.display())))?;
    files.iter().try_for_each(|file| get_one(file, address, &folder, &say))
}

/// Whether a file is there and right; one that is not right is an error, since it may be somebody's own.
fn is_there(file: &Remote, folder: &Path, say: &impl Fn(&str)) -> Result<bool> {
    let wrong = |path: &Path, state: String, expected: String| {
        Failure::Message(format!(
            "{} is there, but {state}, expected {expected}: it is damaged or another file. Remove it, and run this again",
            path.display()
        ))
    };
    let target = folder.join(file.name);
    if file.holds.is_empty() {
        if !target.is_file() {
            return Ok(false);
        }
        let sum = checksum(&target)?;
        if sum != file.sha256 {
            return Err(wrong(&target, format!("its SHA-256 is {sum}"), file.sha256.into()));
        }
        say(&format!("{} is there, and right", target.display()));
        return Ok(true);
    }
    let mut all = true;
    for (name, size) in file.holds {
        let part = folder.join(name);
        match fs::metadata(&part) {
            Ok(m) if m.len() == *size => {}
            Ok(m) => return Err(wrong(&part, format!("it has {} bytes", m.len()), size.to_string())),
            Err(_) => all = false,
        }
    }
    if all {
        say(&format!("the {} files of {} are there", file.holds.len(), file.name));
    }
    Ok(all)
}

fn get_one(file: &Remote, address: &str, folder: &Path, say: &impl Fn(&str)) -> Result<()> {
    if is_there(file, folder, say)? {
        return Ok(());
    }
    let url = format!("{address}/{}", file.name);
    let part = folder.join(format!("{}.part", file.name));
    let resumed = part.is_file();
    let mut sum = match download(&url, &part)? {
        Came::All => checksum(&part)?,
        Came::CannotResume => String::new(),
    };
    if sum != file.sha256 && resumed {
        // The part was of another file, or the server cannot go on from it: once more from the start.
        let _ = fs::remove_file(&part);
        download(&url, &part)?;
        sum = checksum(&part)?;
    }
    if sum != file.sha256 {
        let _ = fs::remove_file(&part);
        return Err(Failure::Message(format!(
            "{}: its SHA-256 is {sum}, expected {}: it was damaged on the way or is another file, and was removed. \
             Try again, or fetch it from a mirror with --from",
            file.name, file.sha256
        )));
    }
    if file.holds.is_empty() {
        let target = folder.join(file.name);
        fs::rename(&part, &target)
            .map_err(|e| Failure::Message(format!("cannot write {}: {e}", target.display())))?;
        say(&format!("wrote {}", target.display()));
    } else {
        unpack(&part, folder)?.iter().for_each(|path| say(&format!("wrote {}", path.display())));
        let _ = fs::remove_file(&part);
    }
    Ok(())
}

/// What a download left.
enum Came {
    /// All there is, if what was there already was right: the checksum decides.
    All,
    /// Nothing: the server does not go on from a part.
    CannotResume,
}

fn download(url: &str, part: &Path) -> Result<Came> {
    let outcome = Command::new("curl")
        .args([
            "--fail",
            "--location",
            "--silent",
            "--show-error",
            "--retry",
            "3",
            "--continue-at",
            "-",
            "--output",
        ])
        .arg(part)
        .arg(url)
        .output();
    let output = match outcome {
        Ok(output) => output,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::Message(format!(
                "`curl` is not installed, which fetches files: install it, or fetch {url} by other means and put it \
                 into {}",
                part.parent().unwrap_or(part).display()
            )));
        }
        Err(e) => return Err(Failure::Message(format!("cannot run `curl`: {e}"))),
    };
    let message = String::from_utf8_lossy(&output.stderr);
    match (output.status.code(), part.is_file()) {
        (Some(0), _) => return Ok(Came::All),
        // curl's CURLE_RANGE_ERROR: the server sent the whole file where the rest was asked for.
        (Some(33), true) => return Ok(Came::CannotResume),
        // There is nothing after what we have.
        (_, true) if message.contains("416") => return Ok(Came::All),
        _ => {}
    }
    let kept = if part.is_file() { "; what came is kept, and the next try goes on from there" } else { "" };
    Err(Failure::Message(format!("cannot fetch {url}: {}{kept}", message.trim())))
}

fn checksum(path: &Path) -> Result<String> {
    let fail = |e: std::io::Error| Failure::Message(format!("cannot read {}: {e}", path.display()));
    let mut file = fs::File::open(path).map_err(fail)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let n = file.read(&mut buffer).map_err(fail)?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

/// Takes the `.bin` files out of a gzipped archive (POSIX tar: headers of 512 bytes, contents padded to that).
fn unpack(archive: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let bad = |problem: &str| Failure::Message(format!("{}: {problem}", archive.display()));
    let file = fs::File::open(archive).map_err(|e| bad(&format!("cannot read it: {e}")))?;
    let mut bytes = vec![];
    flate2::read::MultiGzDecoder::new(file)
        .read_to_end(&mut bytes)
        .map_err(|e| bad(&format!("it cannot be unpacked: {e}")))?;
    let (mut rest, mut written) = (bytes.as_slice(), vec![]);
    while rest.len() >= 512 && rest[0] != 0 {
        let (header, after) = rest.split_at(512);
        let text = |from: usize, to: usize| {
            let field = &header[from..to];
            let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).trim().to_owned()
        };
        let size = usize::from_str_radix(&text(124, 136), 8).map_err(|_| bad("no tar archive"))?;
        let content = after.get(..size).ok_or_else(|| bad("it is cut off"))?;
        // Only the last part of a name is used: nothing leaves the folder.
        let name = text(0, 100);
        let name = name.rsplit('/').next().unwrap_or_default();
        if name.ends_with(".bin") {
            let target = folder.join(name);
            let temporary = folder.join(format!("{name}.part"));
            fs::write(&temporary, content)
                .and_then(|()| fs::rename(&temporary, &target))
                .map_err(|e| bad(&format!("cannot write {}: {e}", target.display())))?;
            written.push(target);
        }
        rest = after.get(size.div_ceil(512) * 512..).unwrap_or_default();
    }
    if written.is_empty() {
        return Err(bad("there are no .bin files in it"));
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;

    /// A server of one file that understands `Range: bytes=N-` (or does not); tells where each request wanted to start.
    fn serve(content: Vec<u8>, requests: usize, ranges: bool) -> (String, mpsc::Receiver<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(requests) {
                let mut stream = stream.unwrap();
                let (mut from, mut path) = (0, String::new());
                for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                    let line = line.unwrap();
                    if let Some(rest) = line.strip_prefix("GET ") {
                        path = rest.split(' ').next().unwrap().to_owned();
                    }
                    if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
                        from = range.trim_end_matches('-').parse().unwrap();
                    }
                    if line.is_empty() {
                        break;
                    }
                }
                tell.send(from).unwrap();
                let from = if ranges { from } else { 0 };
                let head = match (path.ends_with("missing"), from) {
                    (true, _) => "404 Not Found".into(),
                    (_, from) if from >= content.len() => "416 Range Not Satisfiable".into(),
                    (_, 0) => "200 OK".into(),
                    _ => format!(
                        "206 Partial Content\r\nContent-Range: bytes {from}-{}/{}",
                        content.len() - 1,
                        content.len()
                    ),
                };
                let gone = path.ends_with("missing") || from >= content.len();
                let body = if gone { &[][..] } else { &content[from..] };
                let head =
                    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(body).unwrap();
            }
        });
        (address, told)
    }

    /// Without curl the tests cannot run; CI installs it.
    fn curl_is_missing() -> bool {
        let missing = Command::new("curl").arg("--version").output().is_err();
        assert!(!missing || std::env::var_os("CI").is_none(), "curl is a prerequisite of the tests in CI");
        if missing {
            eprintln!("SKIPPED: curl is not installed, so fetching was not tested");
        }
        missing
    }

    fn of(name: &'static str, content: &[u8]) -> Remote {
        let hash: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
        Remote { name, sha256: Box::leak(hash.into_boxed_str()), holds: &[] }
    }

    #[test]
    fn a_file_is_fetched_and_an_interrupted_one_goes_on() {
        if curl_is_missing() {
            return;
        }
        let content: Vec<u8> = (0..50_000_u32).map(|i| (i * 7 % 251) as u8).collect();
        let folder = tempfile::tempdir().unwrap();
        let (address, told) = serve(content.clone(), 1, true);
        let file = of("some.data", &content);
        fs::write(folder.path().join("some.data.part"), &content[..12_345]).unwrap();
        get_one(&file, &address, folder.path(), &|_| {}).unwrap();
        assert_eq!(told.recv().unwrap(), 12_345);
        assert_eq!(fs::read(folder.path().join("some.data")).unwrap(), content);
        // It is there: no request is made, which nobody would answer.
        get_one(&file, &address, folder.path(), &|_| {}).unwrap();
        assert!(!folder.path().join("some.data.part").exists());
    }

    /// A part that the server cannot go on from, one of another file, and one that is longer than the file: each is
    /// thrown away once, and the file comes whole.
    #[test]
    fn a_part_that_does_not_fit_is_fetched_anew() {
        if curl_is_missing() {
            return;
        }
        let content: Vec<u8> = (0..20_000_u32).map(|i| (i * 11 % 241) as u8).collect();
        let file = of("some.data", &content);
        let long = vec![7; 30_000];
        for (part, ranges, requests) in [
            (&content[..5000], false, [5000, 0]),
            (&long[..5000], true, [5000, 0]),
            (&long, true, [30_000, 0]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("some.data.part"), part).unwrap();
            let (address, told) = serve(content.clone(), 2, ranges);
            get_one(&file, &address, folder.path(), &|_| {}).unwrap();
            assert_eq!([told.recv().unwrap(), told.recv().unwrap()], requests);
            assert_eq!(fs::read(folder.path().join("some.data")).unwrap(), content);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
        // A part that is the whole file is taken as it is.
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("some.data.part"), &content).unwrap();
        let (address, told) = serve(content.clone(), 1, true);
        get_one(&file, &address, folder.path(), &|_| {}).unwrap();
        assert_eq!(told.recv().unwrap(), 20_000);
        assert_eq!(fs::read(folder.path().join("some.data")).unwrap(), content);
    }

    #[test]
    fn files_that_are_there_are_checked_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        // Nobody answers there: nothing is fetched.
        let get = |file: &Remote| get_one(file, "http://127.0.0.1:9", folder.path(), &|_| {});
        fs::write(folder.path().join("adult.data"), "junk").unwrap();
        let message = get(&of("adult.data", b"right")).unwrap_err().to_string();
        assert!(
            message.contains("SHA-256") && message.contains("adult.data") && message.contains("Remove it")
        );
        assert_eq!(fs::read(folder.path().join("adult.data")).unwrap(), b"junk");
        get(&of("adult.data", b"junk")).unwrap();
        // An archive is there when all it holds is.
        let archive =
            Remote { name: "x.tar.gz", sha256: "", holds: &[("one_batch.bin", 3), ("test_batch.bin", 2)] };
        fs::write(folder.path().join("test_batch.bin"), "").unwrap();
        let message = get(&archive).unwrap_err().to_string();
        assert!(message.contains("test_batch.bin is there, but it has 0 bytes, expected 2"), "{message}");
        fs::write(folder.path().join("test_batch.bin"), "ab").unwrap();
        assert!(!is_there(&archive, folder.path(), &|_| {}).unwrap(), "one batch is missing");
        fs::write(folder.path().join("one_batch.bin"), "abc").unwrap();
        get(&archive).unwrap();
    }

    #[test]
    fn a_wrong_file_is_refused_and_a_missing_one_said() {
        if curl_is_missing() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (address, _told) = serve(b"something else".to_vec(), 2, true);
        let message =
            get_one(&of("some.data", b"right"), &address, folder.path(), &|_| {}).unwrap_err().to_string();
        assert!(message.contains("SHA-256") && message.contains("some.data"), "{message}");
        let message = get_one(&of("missing", b""), &address, folder.path(), &|_| {}).unwrap_err().to_string();
        assert!(message.contains("/missing") && message.contains("404"), "{message}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_archive_gives_its_batches_and_nothing_leaves_the_folder() {
        let mut tar = vec![];
        for (name, content) in [("a/../../test_batch.bin", &b"xyz"[..]), ("a/readme.html", b"no")] {
            let mut header = vec![0_u8; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
            tar.extend(header);
            tar.extend_from_slice(content);
            tar.resize(tar.len().div_ceil(512) * 512, 0);
        }
        tar.resize(tar.len() + 1024, 0);
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("x.tar.gz");
        let mut zipped =
            flate2::write::GzEncoder::new(fs::File::create(&archive).unwrap(), flate2::Compression::fast());
        zipped.write_all(&tar).unwrap();
        zipped.finish().unwrap();
        assert_eq!(unpack(&archive, folder.path()).unwrap(), [folder.path().join("test_batch.bin")]);
        assert_eq!(fs::read(folder.path().join("test_batch.bin")).unwrap(), b"xyz");
        fs::write(&archive, b"no archive").unwrap();
        assert!(unpack(&archive, folder.path()).is_err());
    }
}
