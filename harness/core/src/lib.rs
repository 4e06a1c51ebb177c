//! The pure half of Muster: file formats, expansion, judging and every decision.
//!
//! Text and facts come in, values go out. Nothing here reads a file, a clock, the environment or the
//! network, and nothing is asynchronous; the crates around it do that and call again with what they found.
//!
//! ```text
//! text -yaml-> Node -check_file-> CheckFile -check-> Check -parameter-> Variant -select-> TestCase -workload-> Workload
//! Job, JobStatus -pipeline-> what to do next        Stdout -judge-> Judgement -result-> CaseResult
//! ```

pub mod adjust;
pub mod case;
pub mod check;
pub mod check_file;
pub mod container;
pub mod dependencies;
pub mod distribute;
pub mod error;
mod exclude;
pub mod extends;
mod fact;
pub mod fixture;
pub mod graph;
pub mod judge;
mod kept;
pub mod lint;
pub mod liveness;
pub mod load;
pub mod matcher;
pub mod modules;
pub mod needs;
pub mod order;
pub mod overrides;
pub mod owner;
pub mod parameter;
pub mod perf;
pub mod pipeline;
pub mod place;
pub mod platform;
pub mod program;
pub mod quarantine;
pub mod reference;
mod reference_file;
pub mod references;
pub mod references_of_case;
pub mod render;
pub mod result;
pub mod rounds;
pub mod rules;
pub mod sanity;
pub mod scheduler;
pub mod scheduler_kind;
pub mod scope;
pub mod script;
pub mod secret;
pub mod select;
pub mod selector;
pub mod settings;
pub mod site;
pub mod site_facts;
pub mod site_file;
pub mod stage_folder;
pub mod staging;
pub mod stdout;
pub mod test_case;
mod variables;
pub mod when;
pub mod workload;
