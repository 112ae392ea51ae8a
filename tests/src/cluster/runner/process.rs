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
use super::volumes::Mount;
use crate::bpf::{Namespace, bind_to_thread, spawn};

/// Gives a process its service account where programs look for it, and its volumes, then becomes that
/// program. What is mounted is seen by the process alone. Volumes are behind each other in `MOUNTS`:
/// a directory, a colon, where it is to be.
const SET_UP: &str = "set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp \"$ACCOUNT\"/* /run/secrets/kubernetes.io/serviceaccount/
for mount in $MOUNTS; do
    mkdir -p \"${mount#*:}\"
    mount --bind \"${mount%%:*}\" \"${mount#*:}\"
done
unset ACCOUNT MOUNTS
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
pub struct Process {
    child: Child,
    /// For what else is run beside it.
    environment: Vec<(String, String)>,
}

impl Process {
    pub fn start(
        program: &Path,
        object: &Value,
        network: Option<&Namespace>,
        account: Option<(&Account, &[Mount])>,
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
        let server = plane::address();
        let mut environment = vec![
            (
                "KUBERNETES_SERVICE_HOST".to_owned(),
                server.ip().to_string(),
            ),
            (
                "KUBERNETES_SERVICE_PORT".to_owned(),
                server.port().to_string(),
            ),
        ];
        for variable in container["env"].as_array().into_iter().flatten() {
            let name = variable["name"].as_str().unwrap_or("").to_owned();
            environment.push((name, value(variable, object, ip, node)));
        }
        command
            .env_clear()
            .env("PATH", path)
            .envs(environment.iter().cloned());
        if let Some((account, mounts)) = account {
            let mounts = mounts
                .iter()
                .map(|it| format!("{}:{}", it.from.display(), it.to));
            let mounts: Vec<String> = mounts.collect();
            command.env("ACCOUNT", account.0.path());
            command.env("MOUNTS", mounts.join(" "));
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
        Process {
            child: child.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}")),
            environment,
        }
    }

    /// Runs the container's program with other arguments, beside it: it sees the same files.
    pub fn beside(&self, program: &Path, args: &[String]) -> Child {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.child.id().to_string(), "--"]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .arg(program)
            .args(args)
            .env_clear()
            .env("PATH", path);
        command.envs(self.environment.iter().cloned());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = spawn(&mut command);
        child.unwrap_or_else(|error| panic!("cannot run {command:?} (of util-linux): {error}"))
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    #[allow(unsafe_code, reason = "kill(2) has no safe form here")]
    pub fn terminate(&self) {
        // SAFETY: takes no pointers; the child has not been waited for, or is gone as a whole.
        let _ = unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
    }

    pub fn kill(&mut self) {
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
