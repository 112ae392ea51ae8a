//! Volumes of pods: what is a pod's own, and what all pods of a node share.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::pod::container;
use crate::bpf::BpfFs;

/// Where a node has its BPF file system.
const BPF: &str = "/sys/fs/bpf";

/// What pods see of their node's files, which are not this machine's: a directory, and a BPF file
/// system that is mounted for the first pod that wants it.
pub struct Volumes {
    root: TempDir,
    bpf: OnceCell<BpfFs>,
}

/// A directory as a pod sees it.
pub struct Mount {
    pub from: PathBuf,
    /// Where it is in the pod.
    pub to: String,
}

impl Volumes {
    pub fn new() -> Self {
        Volumes {
            root: TempDir::new().expect("a temporary directory"),
            bpf: OnceCell::new(),
        }
    }

    /// The mounts of a pod's container; what is the pod's alone is in `own`.
    pub fn of(&self, object: &Value, own: &Path) -> Vec<Mount> {
        let volumes = object["spec"]["volumes"].as_array();
        let mounts = container(object)["volumeMounts"].as_array();
        let mounts = mounts.into_iter().flatten().filter_map(|mount| {
            let to = mount["mountPath"].as_str()?;
            // Every pod has this one by its account.
            if to.starts_with("/var/run/secrets/") {
                return None;
            }
            let named = |volume: &&Value| volume["name"] == mount["name"];
            let volume = volumes.into_iter().flatten().find(named)?;
            let (from, to) = (self.directory(volume, own), to.to_owned());
            Some(Mount { from, to })
        });
        mounts.collect()
    }

    fn directory(&self, volume: &Value, own: &Path) -> PathBuf {
        let (place, path) = if volume["emptyDir"].is_object() {
            (own, volume["name"].as_str())
        } else {
            (self.root.path(), volume["hostPath"]["path"].as_str())
        };
        let path = path.unwrap_or_else(|| panic!("no volume of a known kind: {volume}"));
        if path == BPF {
            return self.bpf.get_or_init(BpfFs::mount).path().to_owned();
        }
        let directory = place.join(path.trim_start_matches('/'));
        fs::create_dir_all(&directory).expect("a directory");
        directory
    }
}
