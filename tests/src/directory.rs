//! A directory of manifests on a real disk.

use std::fs;
use std::path::PathBuf;

use splitter::k8s::Manifests;
use tempfile::TempDir;

/// A directory and what reads it.
pub struct Fixture {
    /// The directory; removed when dropped.
    pub root: TempDir,
    /// What reads it.
    pub manifests: Manifests,
}

impl Default for Fixture {
    fn default() -> Self {
        Self::new()
    }
}

impl Fixture {
    /// An empty directory.
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let manifests = Manifests::new(root.path());
        Fixture { root, manifests }
    }

    /// A place below it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a file, with the directories that it needs.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The names of the Services and the codes of the Problems.
    pub fn read(&mut self) -> (Vec<String>, Vec<&'static str>) {
        let (objects, problems) = self.manifests.reload();
        let names = objects
            .services
            .iter()
            .map(|it| it.object.metadata.name.clone().unwrap());
        (names.collect(), problems.iter().map(|it| it.code).collect())
    }

    /// The names of the Services, where nothing is wrong.
    pub fn services(&mut self) -> Vec<String> {
        let (services, problems) = self.read();
        assert_eq!(problems, [""; 0]);
        services
    }
}

/// A manifest of one Service.
pub fn service(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: 80}}]}}\n"
    )
}
