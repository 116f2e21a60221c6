//! A browser that is driven as a reader drives it: keys, clicks, widths, paper. Its debugging protocol is JSON over a web socket,
//! which is written here by hand: one connection, text frames, nothing else.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "helpers; every binary uses its own part")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A page in a browser of its own.
pub struct Page {
    browser: Child,
    socket: BufReader<TcpStream>,
    next: u64,
    /// What the browser complained about, and what it asked the network for.
    pub complaints: Vec<String>,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

fn wait<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

impl Page {
    /// Opens a file, `width` pixels wide.
    pub fn open(browser: &str, profile: &Path, file: &Path, width: u32) -> Self {
        let mut browser = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args([
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--remote-debugging-port=0",
                "--remote-allow-origins=*",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port: u16 = wait("the browser", || {
            assert!(browser.try_wait().unwrap().is_none(), "the browser ended");
            let text = std::fs::read_to_string(profile.join("DevToolsActivePort")).ok()?;
            text.lines().next()?.parse().ok()
        });
        let path = wait("a tab", || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
            write!(stream, "GET /json/list HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").ok()?;
            let mut answer = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while answer.read_line(&mut line).ok()? > 2 {
                if let Some((_, n)) =
                    line.split_once(':').filter(|h| h.0.eq_ignore_ascii_case("content-length"))
                {
                    length = n.trim().parse().ok()?;
                }
                line.clear();
            }
            let mut text = vec![0; length];
            answer.read_exact(&mut text).ok()?;
            let tabs: Value = serde_json::from_slice(&text).ok()?;
            let tab = tabs.as_array()?.iter().find(|t| t["type"] == "page")?;
            Some(format!("/{}", tab["webSocketDebuggerUrl"].as_str()?.splitn(4, '/').nth(3)?))
        });
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        .unwrap();
        let mut socket = BufReader::new(stream);
        let mut line = String::new();
        socket.read_line(&mut line).unwrap();
        assert!(line.contains("101"), "{line}");
        while line.trim() != "" {
            line.clear();
            socket.read_line(&mut line).unwrap();
        }
        let mut page = Self { browser, socket, next: 0, complaints: vec![] };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.width(width);
        page.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        wait("the page", || {
            (page.eval("document.readyState + location.protocol") == "completefile:").then_some(())
        });
        page
    }

    /// Sets the width.
    pub fn width(&mut self, width: u32) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Shows the page as on paper, or as on a screen.
    pub fn paper(&mut self, paper: bool) {
        self.call("Emulation.setEmulatedMedia", json!({ "media": if paper { "print" } else { "screen" } }));
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The text of an element.
    pub fn text(&mut self, selector: &str) -> String {
        let found = self.eval(&format!("document.querySelector({selector:?}).textContent"));
        found.as_str().unwrap_or_default().to_owned()
    }

    /// Presses a key, as a hand does.
    pub fn key(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            "End" => (35, ""),
            "Home" => (36, ""),
            other => (0, other),
        };
        let event = |kind: &str| json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
        self.call("Input.dispatchKeyEvent", event(if text.is_empty() { "rawKeyDown" } else { "keyDown" }));
        self.call(
            "Input.dispatchKeyEvent",
            json!({ "type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code }),
        );
    }

    /// Clicks in the middle of an element, as a hand does.
    pub fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(function () {{ var e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'center' }}); \
             var b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "id": id, "method": method, "params": parameters }).to_string());
        loop {
            let message: Value = serde_json::from_str(&self.receive()).unwrap();
            self.note(&message);
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn note(&mut self, message: &Value) {
        let asked = &message["params"]["request"]["url"];
        match message["method"].as_str().unwrap_or_default() {
            "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                self.complaints.push(message["params"].to_string());
            }
            "Network.requestWillBeSent" => {
                let url = asked.as_str().unwrap_or_default();
                if !["file:", "data:", "blob:", "about:"].iter().any(|own| url.starts_with(own)) {
                    self.complaints.push(format!("asked for {url}"));
                }
            }
            _ => {}
        }
    }

    fn send(&mut self, text: &str) {
        let n = text.len();
        let mut frame = vec![0x81_u8];
        match n {
            0..=125 => frame.push(0x80 | n as u8),
            126..=65_535 => frame.extend([[0x80 | 126, (n >> 8) as u8].as_slice(), &[n as u8]].concat()),
            _ => frame.extend([[0x80_u8 | 127].as_slice(), &(n as u64).to_be_bytes()].concat()),
        }
        // A mask of zeros is a mask.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.socket.get_mut().write_all(&frame).unwrap();
    }

    fn receive(&mut self) -> String {
        let mut text = vec![];
        loop {
            let mut head = [0_u8; 2];
            self.socket.read_exact(&mut head).unwrap();
            let length = match head[1] & 127 {
                126 => {
                    let mut n = [0; 2];
                    self.socket.read_exact(&mut n).unwrap();
                    u64::from(u16::from_be_bytes(n))
                }
                127 => {
                    let mut n = [0; 8];
                    self.socket.read_exact(&mut n).unwrap();
                    u64::from_be_bytes(n)
                }
                n => u64::from(n),
            };
            let mut part = vec![0; length as usize];
            self.socket.read_exact(&mut part).unwrap();
            match head[0] & 15 {
                0 | 1 => text.extend(part),
                _ => continue,
            }
            if head[0] & 128 != 0 {
                return String::from_utf8(text).unwrap();
            }
        }
    }
}
