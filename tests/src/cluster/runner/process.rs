//! The process of a pod.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::super::api::Api;
use super::super::plane;
use super::pod::{container, name, namespace};
use crate::bpf::{Namespace, bind_to_thread, spawn};

/// Gives a process its service account where programs look for it, and a BPF file system of its own,
/// then becomes that program. What is mounted is seen by the process alone.
const SET_UP: &str = "set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp \"$ACCOUNT\"/* /run/secrets/kubernetes.io/serviceaccount/
mount -t bpf bpf /sys/fs/bpf
unset ACCOUNT
exec \"$0\" \"$@\"";

/// What a pod knows about the API server: files as in every pod.
pub struct Account(TempDir);

impl Account {
    /// None when there is no such account yet.
    pub fn new(namespace: &str, account: &str, api: &Api, ca: &str) -> Option<Self> {
        let token = api.try_token(namespace, account).ok()?;
        let dir = TempDir::new().expect("a temporary directory");
        let files = [("token", &*token), ("ca.crt", ca), ("namespace", namespace)];
        for (name, text) in files {
            fs::write(dir.path().join(name), text).expect("a file");
        }
        Some(Account(dir))
    }
}

/// A running process; killed when dropped.
pub struct Process(Child);

impl Process {
    pub fn start(
        program: &Path,
        object: &Value,
        network: Option<&Namespace>,
        account: Option<&Account>,
        (ip, node): (IpAddr, IpAddr),
        log: &Path,
    ) -> Self {
        let container = container(object);
        let mut command = match account {
            None => Command::new(program),
            Some(_) => {
                let mut outer = Command::new("unshare");
                outer.args(["--mount", "--propagation", "private", "sh", "-c", SET_UP]);
                outer.arg(program);
                outer
            }
        };
        let args = container["args"].as_array().into_iter().flatten();
        command.args(args.filter_map(Value::as_str));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path);
        let server = plane::address();
        command
            .env("KUBERNETES_SERVICE_HOST", server.ip().to_string())
            .env("KUBERNETES_SERVICE_PORT", server.port().to_string());
        for variable in container["env"].as_array().into_iter().flatten() {
            let value = value(variable, object, ip, node);
            command.env(variable["name"].as_str().unwrap_or(""), value);
        }
        if let Some(account) = account {
            command.env("ACCOUNT", account.0.path());
        }
        match network {
            Some(network) => network.adopt(&mut command),
            None => bind_to_thread(&mut command),
        }
        let log = File::options().create(true).append(true).open(log);
        let log = log.expect("a log file");
        let again = log.try_clone().expect("a second handle");
        command.stdin(Stdio::null()).stdout(log).stderr(again);
        let child = spawn(&mut command);
        Process(child.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}")))
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    #[allow(unsafe_code, reason = "kill(2) has no safe form here")]
    pub fn terminate(&self) {
        // SAFETY: takes no pointers; the child has not been waited for, or is gone as a whole.
        let _ = unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
    }

    pub fn kill(&mut self) {
        // Both fail only for one that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn value(variable: &Value, object: &Value, ip: IpAddr, node: IpAddr) -> String {
    if let Some(text) = variable["value"].as_str() {
        return text.to_owned();
    }
    match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
        Some("metadata.name") => name(object).to_owned(),
        Some("metadata.namespace") => namespace(object).to_owned(),
        Some("spec.nodeName") => object["spec"]["nodeName"].as_str().unwrap_or("").to_owned(),
        Some("status.podIP") => ip.to_string(),
        Some("status.hostIP") => node.to_string(),
        _ => String::new(),
    }
}
