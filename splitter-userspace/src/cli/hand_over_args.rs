//! Flags for two instances that follow one another on a node.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::config::{AfterHandOver, HandOver};

/// How an instance takes the place of another one.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Updates")]
pub struct HandOverArgs {
    /// Unix socket on which a running instance is asked for its listening sockets, and on which
    /// this one gives its own to the next [default: none, another instance is in the way]
    #[arg(long, env = "SPLITTER_TAKE_OVER", value_name = "PATH")]
    pub take_over: Option<PathBuf>,

    /// What to do when a successor serves and the requests in hand are finished
    #[arg(
        long,
        env = "SPLITTER_AFTER_HAND_OVER",
        value_enum,
        default_value_t = AfterHandOverArg::Exit
    )]
    pub after_hand_over: AfterHandOverArg,
}

/// Values of `--after-hand-over`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AfterHandOverArg {
    /// End
    Exit,
    /// Wait for the signal to stop, as a supervisor would start it again
    Wait,
}

impl From<HandOverArgs> for HandOver {
    fn from(args: HandOverArgs) -> Self {
        HandOver {
            path: args.take_over,
            after: match args.after_hand_over {
                AfterHandOverArg::Exit => AfterHandOver::Exit,
                AfterHandOverArg::Wait => AfterHandOver::Wait,
            },
        }
    }
}
