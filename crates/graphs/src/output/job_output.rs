//! A job's output on one machine, in directories or below a prefix of an object store: all or
//! nothing.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tonnage_object::{Client, Settings};
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::object::uploads::{Seal, Uploads};
use tonnage_stages::output_file::{FilePaths, OutputFile};

use crate::error::{JobError, setting_error};
use crate::objects::object_input::{ObjectStorage, ObjectUrl, check_access, store_error};
use crate::output::atomic_output::AtomicOutput;
use crate::output::manifest::{MANIFEST, Manifest, part_name};
use crate::phases::Watch;
use crate::tables::output_files::PathOf;

/// An output that is being written.
pub enum JobOutput {
    /// In directories, one per device.
    Files(AtomicOutput),
    /// Below a prefix of a bucket.
    Objects(Box<ObjectOutput>),
}

impl JobOutput {
    /// Prepares directories, or the prefix that a URL names; refuses what would be overwritten.
    /// Names of parts end in `suffix`.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn prepare(
        places: &[PathBuf],
        storage: &ObjectStorage,
        requests: &ObjectAccess,
        suffix: &str,
    ) -> Result<Self, JobError> {
        let urls: Vec<ObjectUrl> = places
            .iter()
            .filter_map(|place| ObjectUrl::of(place))
            .collect();
        match urls.as_slice() {
            [] => Ok(Self::Files(AtomicOutput::prepare(places, suffix)?)),
            [url] if places.len() == 1 => {
                let folder = ObjectOutput::prepare(url, storage, requests, suffix)?;
                Ok(Self::Objects(Box::new(folder)))
            }
            _ => Err(setting_error(
                "output",
                "use directories, or a single URL; to write to a store faster, raise requests",
            )),
        }
    }

    /// The directories among the places, whose devices need room.
    #[must_use]
    pub fn directories<'a>(&self, places: &'a [PathBuf]) -> &'a [PathBuf] {
        match self {
            Self::Files(_) => places,
            Self::Objects(_) => &[],
        }
    }

    /// Concurrent writers: one per device, or per request.
    #[must_use]
    pub fn lanes(&self, places: &[PathBuf]) -> usize {
        match self {
            Self::Files(_) => places.len(),
            Self::Objects(folder) => folder.requests.requests,
        }
    }

    /// Where part `number` is written.
    #[must_use]
    pub fn part(&self, number: usize) -> PathBuf {
        match self {
            Self::Files(unsealed) => unsealed.part(number),
            Self::Objects(folder) => folder.url.join(&folder.name(number)).into(),
        }
    }

    /// Where parts with names of their own are written.
    #[must_use]
    pub fn path_of(&self) -> Box<PathOf> {
        match self {
            Self::Files(unsealed) => {
                let part = unsealed.part_path();
                Box::new(move |number, _| part(number))
            }
            Self::Objects(folder) => {
                let url = folder.url.clone();
                Box::new(move |_, name| url.join(name).into())
            }
        }
    }

    /// The names of parts 0 to `parts`.
    #[must_use]
    pub fn names(&self, parts: usize) -> Vec<String> {
        match self {
            Self::Files(unsealed) => unsealed.names(parts),
            Self::Objects(folder) => (0..parts).map(|number| folder.name(number)).collect(),
        }
    }

    /// Bytes of parts 0 to `parts`, once they are written.
    ///
    /// # Errors
    /// When a file is not there.
    pub fn written_bytes(&self, parts: usize) -> Result<u64, JobError> {
        let bytes = |number| {
            let path = self.part(number);
            let about = fs::metadata(&path).map_err(|why| JobError::file("stat", &path, &why))?;
            Ok(about.len())
        };
        match self {
            Self::Files(_) => (0..parts).map(bytes).sum(),
            Self::Objects(folder) => {
                let uploads = folder.uploads.as_ref();
                Ok(folder.put_bytes + uploads.map_or(0, |uploads| uploads.put_bytes()))
            }
        }
    }

    /// Uploads of the parts, in blocks of `part_bytes`, if they become objects.
    #[must_use]
    pub fn uploads(&mut self, parts: Vec<OutputFile>, part_bytes: usize) -> Option<Arc<Uploads>> {
        match self {
            Self::Files(_) => None,
            Self::Objects(folder) => Some(folder.uploads(parts, part_bytes)),
        }
    }

    /// Uploads of the parts, in blocks of `part_bytes`, whose lengths are not known yet.
    #[must_use]
    pub fn growing_uploads(
        &mut self,
        names: &Arc<FilePaths>,
        part_bytes: usize,
    ) -> Option<Arc<Uploads>> {
        match self {
            Self::Files(_) => None,
            Self::Objects(folder) => {
                let (names, requests) = (Arc::clone(names), folder.requests.clone());
                let seal = Seal::AllTogether;
                let uploads = Uploads::growing(&folder.store, names, part_bytes, seal, requests);
                Some(folder.completed_with(uploads))
            }
        }
    }

    /// Writes all of part 0, the only one, for an output without records.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_only_part(&mut self, content: Vec<u8>) -> Result<(), JobError> {
        let path = self.part(0);
        match self {
            Self::Files(_) => {
                let written = fs::write(&path, content);
                let written = written.and_then(|()| File::open(&path)?.sync_all());
                written.map_err(|why| JobError::file("write", &path, &why))
            }
            Self::Objects(folder) => {
                folder.put_bytes = content.len() as u64;
                folder.put(&folder.name(0), content.into())
            }
        }
    }

    /// Publishes the parts by these names, by their numbers, then the manifest: all, or nothing.
    ///
    /// # Errors
    /// When something cannot be published, or the cancellation.
    pub fn publish(
        self,
        names: &[String],
        manifest: &Manifest,
        watch: &Watch,
    ) -> Result<(), JobError> {
        match self {
            Self::Files(unsealed) => unsealed.publish(names, manifest),
            Self::Objects(folder) => folder.publish(manifest, watch),
        }
    }
}

/// An output below a prefix of a bucket.
pub struct ObjectOutput {
    url: ObjectUrl,
    client: Client,
    requests: ObjectAccess,
    uploads: Option<Arc<Uploads>>,
    store: Settings,
    suffix: String,
    put_bytes: u64, // without uploads
}

impl ObjectOutput {
    fn prepare(
        url: &ObjectUrl,
        storage: &ObjectStorage,
        requests: &ObjectAccess,
        suffix: &str,
    ) -> Result<Self, JobError> {
        let store = storage.bucket(url);
        let client = Client::new(&store).map_err(|why| store_error(&why))?;
        let found = check_access(&store, client.list(&url.key))?;
        if let Some(first) = found.iter().map(|found| &found.key).min() {
            return Err(setting_error(
                "output",
                format!(
                    "{} is not empty (it contains {first}); use an unused URL",
                    store.name(&url.key)
                ),
            ));
        }
        Ok(Self {
            url: url.clone(),
            client,
            requests: requests.clone(),
            uploads: None,
            store,
            suffix: suffix.to_owned(),
            put_bytes: 0,
        })
    }

    fn name(&self, number: usize) -> String {
        format!("{}{}", part_name(number), self.suffix)
    }

    fn uploads(&mut self, parts: Vec<OutputFile>, part_bytes: usize) -> Arc<Uploads> {
        let (seal, requests) = (Seal::AllTogether, self.requests.clone());
        self.completed_with(Uploads::new(&self.store, parts, part_bytes, seal, requests))
    }

    fn completed_with(&mut self, uploads: Uploads) -> Arc<Uploads> {
        let uploads = Arc::new(uploads);
        self.uploads = Some(Arc::clone(&uploads));
        uploads
    }

    fn put(&self, name: &str, content: Bytes) -> Result<(), JobError> {
        let put = self.client.put(&self.url.join(name), content, || false);
        put.map(drop).map_err(|why| store_error(&why))
    }

    fn publish(self, manifest: &Manifest, watch: &Watch) -> Result<(), JobError> {
        let manifest = serde_json::to_vec_pretty(manifest)
            .map_err(|why| JobError::failure(format!("{MANIFEST}: {why}")))?;
        let stopped = || watch.handle.is_cancelled();
        if let Some(uploads) = &self.uploads {
            uploads.complete(stopped).map_err(|why| store_error(&why))?;
        }
        // From here on the output is published or withdrawn: a cancellation comes too late.
        self.put(MANIFEST, manifest.into()).inspect_err(|_| {
            // The next sort refuses what cannot be removed either.
            for name in [MANIFEST.to_owned(), self.name(0)] {
                let _may_stay = self.client.remove(&self.url.join(&name));
            }
            let _may_stay = self.uploads.as_ref().map(|uploads| uploads.take_back());
        })?;
        self.requests.count(&self.client.counts());
        Ok(())
    }
}
