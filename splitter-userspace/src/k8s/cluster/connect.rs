//! The way to the API server.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::reflect::chain;
use crate::config::ClusterSettings;

/// For the API server to say something on a connection that somebody waits on. It sends watches a
/// bookmark each minute; so this is how long an unreachable one goes unnoticed.
const SILENCE: Duration = Duration::from_secs(100);

/// For a connection to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// Why there is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file is not there, or is none.
    #[error("cannot use --kubeconfig {file}: {why}", file = .file.display())]
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Neither a file nor a pod.
    #[error(
        "there is nothing to serve: give --manifests DIR or --kubeconfig FILE, or run in a pod \
         with a service account ({0})"
    )]
    NotInCluster(String),
    /// Certificates that cannot be used, and the like.
    #[error("cannot make a client of the Kubernetes API: {0}")]
    Client(String),
}

/// A client. It connects when it is used.
pub(super) async fn client(settings: &ClusterSettings) -> Result<Client, ConnectError> {
    let mut config = match &settings.kubeconfig {
        Some(file) => from_file(file).await.map_err(|why| {
            let file = file.clone();
            ConnectError::Kubeconfig { file, why }
        })?,
        None => Config::incluster().map_err(|it| ConnectError::NotInCluster(chain(&it)))?,
    };
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    // Otherwise the time for which a connection was idle would count.
    config.reset_reader_on_write = true;
    Client::try_from(config).map_err(|it| ConnectError::Client(chain(&it)))
}

async fn from_file(file: &PathBuf) -> Result<Config, String> {
    let kubeconfig = Kubeconfig::read_from(file).map_err(|it| chain(&it))?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|it| chain(&it))
}
