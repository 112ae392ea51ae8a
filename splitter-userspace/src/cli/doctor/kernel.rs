//! What steering needs of the kernel, of this process and of the NICs.

use super::facts::{Facts, Nic};
use super::line::{Line, State};
use crate::config::{Settings, Steering};
use crate::dataplane::{DataplaneError, Examined, HookMode, XDP_MTU, XdpKind};

/// How bad a lack is: whoever names a mode must have it, `auto` steps down.
fn lack(settings: &Settings) -> State {
    match settings.steering {
        Steering::Auto => State::Warn,
        _ => State::Fail,
    }
}

pub(super) fn judge(facts: &Facts, settings: &Settings) -> Vec<Line> {
    let Some(steering) = &facts.steering else {
        return Vec::new();
    };
    let lack = lack(settings);
    let of = |check: &str, found: &str, result: &Result<(), DataplaneError>| match result {
        Ok(()) => Line::ok(check, found),
        Err(error) => Line::ok(check, "missing").but(lack, error.to_string()),
    };
    let mut lines = vec![
        kernel(steering, lack),
        btf(facts, lack),
        of("capabilities", "there", &steering.capabilities),
        of("BPF file system", "mounted", &steering.bpffs),
        programs(steering, lack),
        jit(facts),
        pin_directory(steering, settings),
    ];
    lines.extend(hooks(steering, settings));
    lines.extend(nics(facts, settings));
    lines
}

/// Where processes connect: asked of the node only for `--connect-hooks auto` and `on`.
fn hooks(steering: &Examined, settings: &Settings) -> Option<Line> {
    let check = "connect hooks";
    let lack = match settings.dataplane.hooks {
        HookMode::Off => return None,
        HookMode::Auto => State::Warn,
        HookMode::On => State::Fail,
    };
    Some(match &steering.hooks {
        Err(why) => Line::ok(check, "not to be had").but(lack, why.as_str()),
        Ok(others) if others.is_empty() => Line::ok(check, "free"),
        Ok(others) => {
            let ids: Vec<_> = others.iter().map(u32::to_string).collect();
            let line = Line::ok(check, format!("programs of others: {}", ids.join(", ")));
            match settings.dataplane.hooks {
                HookMode::On => line,
                _ => line.but(
                    State::Warn,
                    "connections to Services' own addresses are left to them; --connect-hooks on \
                     attaches beside them",
                ),
            }
        }
    })
}

fn kernel(steering: &Examined, lack: State) -> Line {
    let line = Line::ok("kernel", &steering.kernel);
    let mut numbers = steering
        .kernel
        .split(['.', '-'])
        .map_while(|it| it.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match version < (5, 18) {
        true => line.but(lack, "steering needs 5.18 or later, or --steering none"),
        false => line,
    }
}

fn btf(facts: &Facts, lack: State) -> Line {
    match facts.btf {
        true => Line::ok("kernel BTF", "there"),
        false => Line::ok("kernel BTF", "missing").but(
            lack,
            "a kernel built with CONFIG_DEBUG_INFO_BTF, or --steering none",
        ),
    }
}

fn programs(steering: &Examined, lack: State) -> Line {
    let check = "kernel programs";
    match &steering.programs {
        Ok(all) => {
            let all = all.iter();
            let all: Vec<_> = all
                .map(|it| format!("{} ({} instructions verified)", it.name, it.verified))
                .collect();
            Line::ok(check, all.join(", "))
        }
        Err(error) => Line::ok(check, "not to be loaded").but(lack, error.to_string()),
    }
}

fn jit(facts: &Facts) -> Line {
    let check = "BPF compiler";
    match facts
        .sysctls
        .get("net.core.bpf_jit_enable")
        .map(String::as_str)
    {
        Some("0") => Line::ok(check, "off").but(
            State::Warn,
            "sysctl -w net.core.bpf_jit_enable=1: programs are interpreted, several times slower",
        ),
        // Kernels that always compile have no switch.
        _ => Line::ok(check, "on"),
    }
}

fn pin_directory(steering: &Examined, settings: &Settings) -> Line {
    let check = "pin directory";
    let dir = settings.dataplane.pin_dir.display();
    match steering.holder {
        None => Line::ok(check, format!("{dir} is free")),
        Some(pid) => {
            let line = Line::ok(check, format!("{dir} is of process {pid}"));
            match settings.hand_over.path {
                Some(_) => line,
                None => line.but(
                    State::Warn,
                    "a second instance is refused: stop that one, or take over with --take-over",
                ),
            }
        }
    }
}

fn nics(facts: &Facts, settings: &Settings) -> Vec<Line> {
    let lack = lack(settings);
    match &facts.nics {
        Err(error) => {
            let line = Line::ok("NIC", error.as_str());
            vec![line.but(lack, "name those that lead outside with --interface")]
        }
        Ok(nics) if settings.steering == Steering::SkLookup => nics
            .iter()
            .map(|nic| Line::ok(format!("NIC {}", nic.interface.name), describe(nic)))
            .collect(),
        Ok(nics) => {
            let isolates = !settings.dataplane.policy.cpus.of.iter().all(Vec::is_empty);
            let generic = settings.dataplane.xdp == XdpKind::Generic;
            let ours = |nic: &Nic| {
                let steering = facts.steering.as_ref();
                steering
                    .is_some_and(|it| it.holder.is_some() || it.kept.contains(&nic.interface.index))
            };
            nics.iter()
                .map(|nic| match (ours(nic), generic) {
                    (false, _) if nic.interface.xdp.is_some() => occupied(nic, lack),
                    (_, true) => Line::ok(format!("NIC {}", nic.interface.name), describe(nic)),
                    (_, false) => native(nic, lack, isolates),
                })
                .collect()
        }
    }
}

fn describe(nic: &Nic) -> String {
    let native = match nic.features {
        None => "does not say what it does of XDP",
        Some(it) if it.basic => "native XDP",
        Some(_) => "no native XDP",
    };
    let program = nic.interface.xdp;
    let program = program.map_or(String::new(), |id| format!(", XDP program {id} on it"));
    let (driver, mtu) = (&nic.driver, nic.interface.mtu);
    format!("driver {driver}: {native}, MTU {mtu}{program}")
}

fn occupied(nic: &Nic, lack: State) -> Line {
    Line::ok(format!("NIC {}", nic.interface.name), describe(nic)).but(
        lack,
        "another owner's XDP program is left alone: remove it there, or --steering sk-lookup",
    )
}

/// What XDP in the driver needs of a NIC.
fn native(nic: &Nic, lack: State, isolates: bool) -> Line {
    let line = Line::ok(format!("NIC {}", nic.interface.name), describe(nic));
    let features = nic.features.unwrap_or_default();
    if nic.features.is_some() && !features.basic {
        return line.but(
            lack,
            "a driver with native XDP, --steering sk-lookup, or --xdp-mode generic, which is slow",
        );
    }
    if nic.interface.mtu > XDP_MTU && !features.fragments {
        return line.but(
            State::Warn,
            format!(
                "the driver may take no XDP for packets in pieces: if so, `ip link set {} mtu {XDP_MTU}` \
                 or --steering sk-lookup",
                nic.interface.name
            ),
        );
    }
    if isolates && nic.features.is_some() && !features.redirect {
        return line.but(
            State::Warn,
            "the driver moves no packets to other CPUs: --cpu-isolation keeps threads apart only",
        );
    }
    line
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::dataplane::{Interface, XdpFeatures};

    const ALL: XdpFeatures = XdpFeatures {
        basic: true,
        redirect: true,
        fragments: true,
    };

    fn settings(flags: &[&str]) -> Settings {
        let flags = ["splitter", "run", "--manifests=m", "--steering=xdp"]
            .iter()
            .chain(flags);
        let Command::Run(args) = Cli::try_parse_from(flags).unwrap().command else {
            panic!("these are flags of run");
        };
        Settings::try_from(*args).unwrap()
    }

    fn nic(mtu: u32, program: Option<u32>, features: Option<XdpFeatures>) -> Nic {
        Nic {
            interface: Interface {
                index: 2,
                name: "en0".to_owned(),
                mtu,
                xdp: program,
            },
            driver: "ice".to_owned(),
            features,
        }
    }

    /// What is thought of a NIC by an instance with these flags, where programs of ours were left
    /// on some.
    fn judged_with(nic: Nic, kept: &[u32], flags: &[&str]) -> Line {
        let examined = Examined {
            kernel: "6.12.0".to_owned(),
            capabilities: Ok(()),
            bpffs: Ok(()),
            holder: None,
            kept: kept.to_vec(),
            programs: Ok(Vec::new()),
            hooks: Ok(Vec::new()),
        };
        let facts = Facts {
            steering: Some(examined),
            nics: Ok(vec![nic]),
            btf: true,
            sysctls: Default::default(),
            files: None,
            followed: None,
            cpu: Vec::new(),
        };
        nics(&facts, &settings(flags)).remove(0)
    }

    /// The same, with packets to be moved to other CPUs.
    fn judged(mtu: u32, program: Option<u32>, features: Option<XdpFeatures>) -> Line {
        let flags = ["--cpu-isolation=north-south=0;east-west=1"];
        judged_with(nic(mtu, program, features), &[], &flags)
    }

    #[test]
    fn a_program_that_we_left_is_not_another_owners() {
        let left = judged_with(nic(1500, Some(7), Some(ALL)), &[2], &[]);
        assert_eq!(left.state, State::Ok, "{left:?}");
        let other = judged_with(nic(1500, Some(7), Some(ALL)), &[3], &[]);
        assert_eq!(other.state, State::Fail, "{other:?}");
    }

    #[test]
    fn hooks_of_others_and_none_at_all_are_told_by_what_is_asked_for() {
        let judged = |found: Result<Vec<u32>, String>, flag: &str| {
            let examined = Examined {
                kernel: "6.12.0".to_owned(),
                capabilities: Ok(()),
                bpffs: Ok(()),
                holder: None,
                kept: Vec::new(),
                programs: Ok(Vec::new()),
                hooks: found,
            };
            hooks(&examined, &settings(&[flag])).map(|line| line.state)
        };
        let (auto, on) = ("--connect-hooks=auto", "--connect-hooks=on");
        let none = || Err("no cgroups".to_owned());
        assert_eq!(judged(Ok(vec![]), auto), Some(State::Ok));
        assert_eq!(judged(Ok(vec![7]), auto), Some(State::Warn));
        assert_eq!(judged(Ok(vec![7]), on), Some(State::Ok));
        assert_eq!(judged(none(), auto), Some(State::Warn));
        assert_eq!(judged(none(), on), Some(State::Fail));
        assert_eq!(judged(none(), "--connect-hooks=off"), None);
    }

    #[test]
    fn what_is_asked_for_in_the_stack_needs_nothing_of_the_driver() {
        let generic = ["--xdp-mode=generic"];
        let none = Some(XdpFeatures::default());
        let line = judged_with(nic(9000, None, none), &[], &generic);
        assert_eq!(line.state, State::Ok, "{line:?}");
        let line = judged_with(nic(1500, Some(7), none), &[], &generic);
        assert_eq!(line.state, State::Fail, "{line:?}");
    }

    #[test]
    fn nics_are_judged_by_what_their_drivers_say() {
        let whole = XdpFeatures {
            fragments: false,
            ..ALL
        };
        let fixed = XdpFeatures {
            redirect: false,
            ..ALL
        };
        let cases = [
            (judged(1500, None, Some(ALL)), State::Ok, ""),
            (judged(9000, None, Some(ALL)), State::Ok, ""),
            (judged(1500, None, None), State::Ok, ""),
            (
                judged(9000, None, None),
                State::Warn,
                "ip link set en0 mtu 3498",
            ),
            (
                judged(9000, None, Some(whole)),
                State::Warn,
                "--steering sk-lookup",
            ),
            (
                judged(1500, None, Some(fixed)),
                State::Warn,
                "--cpu-isolation",
            ),
            (
                judged(1500, None, Some(XdpFeatures::default())),
                State::Fail,
                "--xdp-mode generic",
            ),
            (
                judged(1500, Some(7), Some(ALL)),
                State::Fail,
                "another owner",
            ),
        ];
        for (line, state, remedy) in cases {
            assert_eq!(line.state, state, "{line:?}");
            assert!(line.remedy.contains(remedy), "{line:?}");
        }
        let found = judged(1500, Some(7), Some(ALL)).found;
        assert_eq!(
            found,
            "driver ice: native XDP, MTU 1500, XDP program 7 on it"
        );
    }
}
