//! An object of S3, of a web server or of HDFS, read by requests for ranges.

use super::hdfs::Hdfs;
use crate::{Error, Result};
use bytes::{Buf, Bytes};
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use object_store::{ClientOptions, GetOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::runtime::Runtime;

/// An object as it was when it was found.
#[derive(Debug)]
pub(crate) struct Object {
    path: PathBuf,
    keeper: Keeper,
    version: Version,
}

/// Who has the object.
#[derive(Debug)]
enum Keeper {
    Store(Arc<dyn ObjectStore>, Key),
    Hdfs(Hdfs),
}

/// What tells one version of an object from another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) bytes: u64,
    pub(super) tag: Option<String>,
}

/// Bytes of the first request of a reader that may be left soon, and of the largest.
const FIRST: u64 = 1 << 18;
const MOST: u64 = 1 << 23;
/// Ranges that are no further apart are fetched together: a request costs more than these bytes.
const GAP: u64 = 1 << 20;

impl Object {
    /// Asks the store for the object of this name.
    pub(super) fn find(path: &Path) -> Result<Self> {
        let failed = |source| Error::Read { path: path.into(), source };
        let refused = |why: &str| failed(io::Error::new(ErrorKind::InvalidInput, why));
        let name = path.to_str().ok_or_else(|| refused("its name is no text"))?;
        let (scheme, rest) = name.split_once("://").ok_or_else(|| refused("it names no store"))?;
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() || key.is_empty() || key.ends_with('/') {
            return Err(refused("expected the name of one object, such as s3://bucket/folder/table.parquet"));
        }
        if key.contains('?') && scheme.starts_with("http") {
            return Err(refused(
                "a question mark is no part of a file's name here: what follows it would be lost",
            ));
        }
        let keeper = match scheme {
            "webhdfs" | "swebhdfs" => {
                Keeper::Hdfs(Hdfs::new(host, key, scheme == "swebhdfs").map_err(failed)?)
            }
            _ => {
                let key = match scheme.starts_with("http") {
                    true => Key::from_url_path(key),
                    false => Key::parse(key),
                };
                let key = key.map_err(|e| refused(&e.to_string()))?;
                Keeper::Store(store(scheme, host).map_err(|e| failed(e.into()))?, key)
            }
        };
        let version = keeper.version().map_err(failed)?;
        Ok(Self { path: path.into(), keeper, version })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.version.bytes
    }

    pub(super) fn tag(&self) -> Option<&str> {
        self.version.tag.as_deref()
    }

    /// One request.
    fn range(&self, range: Range<u64>) -> io::Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        if range.end > self.version.bytes {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let length = range.end - range.start;
        let (version, bytes) = self.keeper.range(range)?;
        if version != self.version || bytes.len() as u64 != length {
            return Err(ErrorKind::StaleNetworkFileHandle.into());
        }
        Ok(bytes)
    }
}

impl Keeper {
    /// The version that is there now.
    fn version(&self) -> io::Result<Version> {
        match self {
            Self::Store(store, key) => {
                let meta = wait(store.head(key))??;
                Ok(Version { bytes: meta.size, tag: meta.e_tag })
            }
            Self::Hdfs(file) => file.version(),
        }
    }

    /// The bytes of a range, and the version that they are of.
    fn range(&self, range: Range<u64>) -> io::Result<(Version, Bytes)> {
        match self {
            Self::Store(store, key) => wait(async {
                let answer = store.get_opts(key, GetOptions::new().with_range(Some(range))).await?;
                let version = Version { bytes: answer.meta.size, tag: answer.meta.e_tag.clone() };
                Ok::<_, object_store::Error>((version, answer.bytes().await?))
            })?
            .map_err(io::Error::from),
            Self::Hdfs(file) => file.range(range),
        }
    }
}

/// The store of a bucket or a web server; one for all its objects, so that connections are kept.
fn store(scheme: &str, host: &str) -> object_store::Result<Arc<dyn ObjectStore>> {
    static STORES: Mutex<BTreeMap<String, Arc<dyn ObjectStore>>> = Mutex::new(BTreeMap::new());
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let name = format!("{scheme}://{host}");
    if let Some(store) = stores.get(&name) {
        return Ok(Arc::clone(store));
    }
    let retry = RetryConfig { max_retries: 4, ..RetryConfig::default() };
    let store: Arc<dyn ObjectStore> = if scheme.starts_with("http") {
        let options = ClientOptions::new().with_allow_http(scheme == "http");
        Arc::new(HttpBuilder::new().with_url(&name).with_client_options(options).with_retry(retry).build()?)
    } else {
        let plain = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
            .iter()
            .find_map(|variable| std::env::var(variable).ok())
            .is_some_and(|endpoint| endpoint.starts_with("http://"));
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(host).with_retry(retry);
        if plain {
            // Whoever names a server by http:// means it.
            builder = builder.with_allow_http(true);
        }
        Arc::new(builder.build()?)
    };
    stores.insert(name, Arc::clone(&store));
    Ok(store)
}

/// Waits for an answer of a store.
pub(super) fn wait<T>(answer: impl Future<Output = T>) -> io::Result<T> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let start = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(2)
            .thread_name("leakscope-store")
            .enable_all()
            .build()
            .map_err(|e| e.to_string())
    };
    match RUNTIME.get_or_init(start) {
        Ok(runtime) => Ok(runtime.block_on(answer)),
        Err(message) => Err(io::Error::other(message.clone())),
    }
}

/// The bytes of an object one after the other, in requests that grow.
#[derive(Debug)]
pub(super) struct Requests {
    object: Arc<Object>,
    at: u64,
    end: u64,
    next: u64,
    buffer: Bytes,
}

impl Requests {
    pub(super) fn new(object: &Arc<Object>, start: u64, end: Option<u64>) -> Self {
        let next = if end.is_some() { MOST } else { FIRST };
        let end = end.unwrap_or(object.bytes()).min(object.bytes());
        Self { object: Arc::clone(object), at: start, end, next, buffer: Bytes::new() }
    }
}

impl Read for Requests {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.buffer.is_empty() && self.at < self.end {
            let until = self.end.min(self.at + self.next);
            self.buffer = self.object.range(self.at..until)?;
            (self.at, self.next) = (until, MOST.min(2 * self.next));
        }
        let count = out.len().min(self.buffer.len());
        self.buffer.copy_to_slice(&mut out[..count]);
        Ok(count)
    }
}

/// An object with some of its ranges in memory.
pub(crate) struct Held {
    object: Arc<Object>,
    ranges: Vec<(u64, Bytes)>,
}

impl Held {
    /// Fetches ranges, close ones in one request.
    pub(super) fn fetch(object: &Arc<Object>, wanted: &[Range<u64>]) -> io::Result<Self> {
        let fetched = together(wanted).into_iter().map(|range| Ok((range.start, object.range(range)?)));
        let ranges = fetched.collect::<io::Result<_>>()?;
        Ok(Self { object: Arc::clone(object), ranges })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.object.bytes()
    }

    pub(super) fn range(&self, range: Range<u64>) -> io::Result<Bytes> {
        let covers =
            |(start, bytes): &&(u64, Bytes)| *start <= range.start && range.end <= start + bytes.len() as u64;
        match self.ranges.iter().find(covers) {
            Some((start, bytes)) => {
                Ok(bytes.slice((range.start - start) as usize..(range.end - start) as usize))
            }
            None => self.object.range(range),
        }
    }

    pub(super) fn reader(&self, from: u64) -> Box<dyn Read> {
        let covers = |(start, bytes): &&(u64, Bytes)| *start <= from && from < start + bytes.len() as u64;
        match self.ranges.iter().find(covers) {
            Some((start, bytes)) => {
                let end = start + bytes.len() as u64;
                Box::new(bytes.slice((from - start) as usize..).reader().chain(Requests::new(
                    &self.object,
                    end,
                    None,
                )))
            }
            None => Box::new(Requests::new(&self.object, from, None)),
        }
    }
}

/// The ranges in their order, those that are close to one another as one.
fn together(wanted: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut wanted = wanted.to_vec();
    wanted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = vec![];
    for range in wanted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_ranges_are_fetched_together() {
        assert_eq!(together(&[5 << 20..6 << 20, 10..20, 30..40, 35..50]), [10..50, 5 << 20..6 << 20]);
        assert_eq!(together(&[]), []);
    }
}
