//! Somebody else's controller as a process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use splitter_tests::eventually;
use tempfile::TempDir;

use super::world::World;

/// A running one; ends when dropped.
pub struct Controller {
    child: Child,
    dir: TempDir,
}

impl Controller {
    /// Starts the program that a variable names. Its resources are in the file that another one does.
    pub fn start(world: &World, variable: &str, args: &[String]) -> Self {
        install(world, &path(&format!("{variable}_CRDS")));
        let dir = TempDir::new().unwrap();
        let log = File::create(dir.path().join("log")).unwrap();
        let child = Command::new(path(variable))
            .args(args)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Controller { child, dir }
    }

    /// Fails with its last words when it has ended.
    #[track_caller]
    pub fn check(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended: {}", self.log());
    }

    /// What it says.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("the controller's last words:\n{}", self.log());
        }
    }
}

fn path(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    path.unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask test --delivery`"))
        .into()
}

/// Installs the kinds of a file, or of all files of a folder, and waits until they are served.
fn install(world: &World, path: &Path) {
    let files: Vec<PathBuf> = match std::fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![path.to_owned()],
    };
    let is_crd = |file: &&PathBuf| file.to_string_lossy().ends_with("crd.yaml");
    for file in files.iter().filter(is_crd) {
        world.admin.apply(&std::fs::read_to_string(file).unwrap());
    }
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    eventually("the kinds are served", || {
        let all = world.admin.get(crds).unwrap();
        let mut items = all["items"].as_array().into_iter().flatten();
        items.all(|it| {
            let mut conditions = it["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
        })
    });
}
