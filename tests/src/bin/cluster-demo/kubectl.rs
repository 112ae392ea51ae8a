//! kubectl, by the program.

use std::path::PathBuf;
use std::process::Command;

pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub fn new(program: PathBuf, kubeconfig: PathBuf) -> Self {
        Kubectl {
            program,
            kubeconfig,
        }
    }

    /// Shows a command and what it prints; it must succeed.
    pub fn run(&self, args: &[&str]) {
        println!("$ kubectl {}", args.join(" "));
        let status = self.command(args).status().expect("kubectl runs");
        assert!(status.success(), "kubectl {}: {status}", args.join(" "));
    }

    /// What a command prints.
    pub fn output(&self, args: &[&str]) -> String {
        let output = self.command(args).output().expect("kubectl runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(args);
        command
    }
}
