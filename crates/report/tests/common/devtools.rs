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

/// What a page of an audit says in cards that follow the noise: texts of cells and leads, of drawings, of hovers, by card. What
/// moves with nothing (where the noise comes from, what it was audited at) is left out.
pub const FOLLOWS: &str = r#"(function () {
  var out = {};
  function shown(e) {
    e = e.cloneNode(true);
    e.querySelectorAll("[hidden], .stated, .asaudited").forEach(function (h) { h.remove(); });
    return same(e.textContent);
  }
  // Beyond its curve nothing is known of the utility: the page says so, a document has no number for it.
  function same(text) { return text.replace(/≈ /g, "").replace(/off the curve/g, "unbounded").replace(/\s+/g, " ").trim(); }
  out.head = [].map.call(document.querySelectorAll("header .meta, .tile"), shown);
  ["who", "tell", "most", "least", "attributes", "whole", "noise", "score", "inference", "loss"].forEach(function (id) {
    var card = document.getElementById(id);
    if (!card) return;
    var all = function (selector) { return [].slice.call(card.querySelectorAll(selector)); };
    // Axes of the scatter plots end at round numbers, that of the noise at the one chosen; goals that are met already are not listed.
    var said = id === "loss" || id === "noise" ? [] : all("thead th, p.lead, .rest pre > span, svg text, .legend");
    var rows = all("tbody tr").filter(function (r) { return id !== "noise" || /^largest η/.test(r.textContent); });
    out[id] = said.map(shown).concat(rows.map(function (r) { return [].map.call(r.cells, shown).join(" | "); }),
      all("[data-tip]").filter(function (e) { return !e.matches(".dots, .here"); }).map(function (e) { return same(e.getAttribute("data-tip")); }),
      all("svg.chart").map(function (e) { return same(e.getAttribute("aria-label")); })).sort();
  });
  return out;
})()"#;

/// Whether two such answers say the same, numbers to the three digits that are shown.
pub fn same_numbers(here: &Value, there: &Value, subject: &str) {
    let cards = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(cards(here), cards(there), "{subject}");
    for card in cards(here) {
        let texts = |v: &Value| -> Vec<(String, Vec<f64>)> {
            let all = v[&card].as_array().unwrap().iter().map(|t| numbers_of(t.as_str().unwrap()));
            let mut all: Vec<_> = all.collect();
            // Rows that a number orders may change places with a neighbour that it equals.
            all.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.partial_cmp(&b.1).unwrap()));
            all
        };
        let (a, b) = (texts(here), texts(there));
        assert_eq!(a.len(), b.len(), "{subject}, {card}: {here} {there}");
        for (a, b) in a.iter().zip(&b) {
            assert_eq!(a.0, b.0, "{subject}, {card}");
            assert_eq!(a.1.len(), b.1.len(), "{subject}, {card}: {a:?} {b:?}");
            let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 0.011 * x.abs().max(y.abs()) + 1e-12;
            assert!(a.1.iter().zip(&b.1).all(near), "{subject}, {card}: {a:?} {b:?}");
        }
    }
}

/// A text without its numbers, and these.
fn numbers_of(text: &str) -> (String, Vec<f64>) {
    let (mut words, mut numbers, mut digits) = (String::new(), vec![], String::new());
    let superscript = |c: char| "⁻⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|s| s == c);
    let flush = |digits: &mut String, words: &mut String, numbers: &mut Vec<f64>| {
        if !digits.is_empty() {
            let end = digits.len() - digits.trim_end_matches(['.', ',']).len();
            let tail = digits.split_off(digits.len() - end);
            numbers.extend(digits.replace(',', "").parse::<f64>().ok());
            words.push('#');
            words.push_str(&tail);
            digits.clear();
        }
    };
    let text = text.replace("×10", "e");
    let mut power = String::new();
    for c in text.chars().chain([' ']) {
        if !power.is_empty() || (c == 'e' && digits.ends_with(|d: char| d.is_ascii_digit())) {
            match superscript(c) {
                None if power.is_empty() => {
                    power.push('e');
                    continue;
                }
                Some(0) => power.push('-'),
                Some(k) => power.push_str(&(k - 1).to_string()),
                None => {
                    digits.push_str(if power.len() > 1 { &power } else { "" });
                    let was_letter = power.len() == 1;
                    power.clear();
                    flush(&mut digits, &mut words, &mut numbers);
                    words.push_str(if was_letter { "e" } else { "" });
                    words.push(c);
                }
            }
            continue;
        }
        if c.is_ascii_digit() || ((c == '.' || c == ',') && !digits.is_empty()) {
            digits.push(c);
        } else {
            flush(&mut digits, &mut words, &mut numbers);
            words.push(c);
        }
    }
    (words, numbers)
}

fn wait<T>(subject: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(actual) = attempt() {
            return actual;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long for {subject}");
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
        page.go(file);
        page
    }

    /// Opens another file in the same browser.
    pub fn go(&mut self, file: &Path) {
        // Another address each time: one that differs by its anchor alone would not be loaded.
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        wait("an empty page", || {
            (self.eval("document.readyState + location.protocol") == "completeabout:").then_some(())
        });
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        wait("the page", || {
            (self.eval("document.readyState + location.protocol") == "completefile:").then_some(())
        });
        // What the page puts off until it has been shown.
        self.eval("new Promise(function (done) { setTimeout(done, 0); })");
    }

    /// Chooses a noise and how often it is released, as a reader types them.
    pub fn dial(&mut self, sigma: f64, releases: u32) {
        for (dial, value) in [("sigma", sigma.to_string()), ("releases", releases.to_string())] {
            self.eval(&format!(
                "(function () {{ var e = document.querySelector('[data-dial={dial}]'); e.value = '{value}'; \
                 e.dispatchEvent(new Event('input')); }})()"
            ));
        }
    }

    /// Sets the width.
    pub fn width(&mut self, width: u32) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        // What follows the width does so with the next picture.
        self.eval(
            "new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done, 0); }); })",
        );
    }

    /// Shows the page as on paper, or as on a screen.
    pub fn paper(&mut self, paper: bool) {
        self.call("Emulation.setEmulatedMedia", json!({ "media": if paper { "print" } else { "screen" } }));
    }

    /// Shows the page in the dark, or in the light.
    pub fn dark(&mut self, dark: bool) {
        let scheme = json!({ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", json!({ "media": "screen", "features": [scheme] }));
    }

    /// The page as a printer gets it: a PDF, as base 64.
    pub fn pdf(&mut self) -> String {
        let printed = self.call("Page.printToPDF", json!({ "printBackground": true }));
        printed["data"].as_str().unwrap_or_default().to_owned()
    }

    /// A picture of the whole page, as base 64 of a PNG.
    pub fn picture(&mut self) -> String {
        let taken =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        taken["data"].as_str().unwrap_or_default().to_owned()
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The text of an element.
    pub fn text(&mut self, selector: &str) -> String {
        let actual = self.eval(&format!("document.querySelector({selector:?}).textContent"));
        actual.as_str().unwrap_or_default().to_owned()
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
        let address = &message["params"]["request"]["url"];
        match message["method"].as_str().unwrap_or_default() {
            "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                self.complaints.push(message["params"].to_string());
            }
            "Network.requestWillBeSent" => {
                let url = address.as_str().unwrap_or_default();
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
