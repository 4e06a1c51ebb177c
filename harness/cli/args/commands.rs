//! The commands beside the actions, and the arguments of those that have few.

use super::{CheckCommand, ConvertArgs, InitArgs, NightArgs, ResultsCommand};
use clap::{Args, Subcommand, ValueEnum};

/// Commands beside the actions.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Write a site file and a first check for this machine
    Init(InitArgs),
    /// Look for what would keep the selected checks from running
    ///
    /// Of each partition: versions, rights, quotas, queues, room and clocks; of this machine: limits, folders and the database.
    #[command(after_help = "Filters stand before the command: `muster -c checks/ -t nightly doctor`.\n\
                            Exit codes: 0 nothing is wrong, or there are warnings at most; 1 something is wrong; 2 bad usage, or \
                            mistakes in files.")]
    Doctor(DoctorArgs),
    /// Show the settings in force, and where each comes from
    Config {
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Show, compare and explain stored sessions
    Results {
        #[command(subcommand)]
        what: ResultsCommand,
    },
    /// What changed in a night, with one stated error rate
    ///
    /// For each system: which figures are worse or better than they were, since when and by how much, and what was not measured.
    Night(NightArgs),
    /// Watch a session that runs elsewhere
    ///
    /// What runs and where, why cases wait, what has failed.
    Top(TopArgs),
    /// Continue a session whose process is gone
    ///
    /// Takes over what runs, runs the rest, and reports everything.
    Attach {
        /// The session, or an unambiguous beginning of it; `latest` for the newest that was interrupted
        #[arg(default_value = "latest")]
        session: String,
    },
    /// Stop and remove what abandoned sessions left
    Sweep(SweepArgs),
    /// Prepare a Kubernetes cluster for the selected checks
    K8s {
        #[command(subcommand)]
        what: K8sCommand,
    },
    /// Prepare an account of AWS for the selected checks
    Ec2 {
        #[command(subcommand)]
        what: Ec2Command,
    },
    /// Write, format and lint check files
    Check {
        #[command(subcommand)]
        what: CheckCommand,
    },
    /// Print the completions of a shell
    ///
    /// To use them now: `source <(muster completions bash)`
    #[command(override_usage = "muster completions <SHELL>")]
    Completions {
        /// The shell
        #[arg(required_unless_present = "list_values")]
        shell: Option<clap_complete::Shell>,
        /// What a script asks for.
        #[arg(id = "list_values", long = "list", hide = true, value_enum)]
        list: Option<Completed>,
    },
    /// Print the manual page
    ///
    /// To read it: `muster man | man -l -`
    Man,
    /// Convert checks of ReFrame and Anubis, and site files, to YAML
    ///
    /// Lists what could not be converted.
    Convert(ConvertArgs),
    /// Measure this machine with a built-in kernel
    ///
    /// The shipped checks run these kernels.
    Kernel {
        #[command(subcommand)]
        kernel: muster_kernels::Kernel,
    },
}

/// Values that shells complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Completed {
    Names,
    Tags,
    Systems,
    Modes,
    Sessions,
}

/// `muster doctor`
#[derive(Debug, Clone, Copy, Args)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `muster top`
#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// The session, or an unambiguous beginning of it [default: the newest that has not ended, else the newest]
    pub session: Option<String>,
    /// Print one JSON object and end
    #[arg(long)]
    pub json: bool,
}

/// `muster config ...`
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting with its value and its source
    Show,
}

/// `muster k8s ...`
#[derive(Debug, Clone, Subcommand)]
pub enum K8sCommand {
    /// Print the least permissions that the selected checks need, as a Role and its binding
    #[command(after_help = "Filters stand before the command: `muster -c checks/ -t nightly k8s role`.")]
    Role(RoleArgs),
}

/// `muster ec2 ...`
#[derive(Debug, Clone, Subcommand)]
pub enum Ec2Command {
    /// Print the least rights that the selected checks need, as a policy of IAM
    #[command(after_help = "Filters stand before the command: `muster -c checks/ -t nightly ec2 policy`.")]
    Policy {
        /// The number of the account, in place of any
        #[arg(long, value_name = "NUMBER", default_value = "*", value_parser = account)]
        account: String,
    },
    /// Print the commands of the AWS CLI that make the bucket and a way to it
    Setup {
        /// Print them: Muster runs none of them itself
        #[arg(long, required = true)]
        print: bool,
    },
}

/// An account of AWS, or any.
fn account(text: &str) -> Result<String, String> {
    let is_number = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || text == "*" { Ok(text.to_owned()) } else { Err("an account has 12 digits".to_owned()) }
}

/// `muster sweep ...`
#[derive(Debug, Clone, Args)]
pub struct SweepArgs {
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove what is kept of failures, whatever its age
    #[arg(long)]
    pub kept: bool,
    /// Only what is left of the case with this identifier [repeatable]
    #[arg(long, value_name = "ID")]
    pub id: Vec<String>,
}

/// `muster k8s role ...`
#[derive(Debug, Clone, Args)]
pub struct RoleArgs {
    /// The service account that gets the role
    #[arg(long, value_name = "NAME", default_value = "muster")]
    pub service_account: String,
    /// The namespace, in place of the one that the cases would run in
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Leave out permissions that cases run without: those that explain why a case waits, check beforehand whether its pods would be
    /// admitted, or list leftovers for `muster sweep`. Where a container has a probe or a hook, events stay: they say how it ended
    #[arg(long)]
    pub required_only: bool,
}
