//! A fake Kubernetes for trials by hand: `KUBECONFIG=$(muster-fake-api)`-style use, with `--script "run 5s; exit 0"` for all pods.

use muster_fake_api::FakeApi;
use std::{env, error::Error, io::Write as _};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let api = FakeApi::start().await?;
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()) {
            ("--script", Some(script)) => api.script("", &script)?,
            ("--namespace", Some(name)) => api.namespace(&name),
            _ => return Err("usage: muster-fake-api [--script SCRIPT] [--namespace NAME]".into()),
        }
    }
    // The path stands alone on the first line, for a script to read.
    println!("{}", api.kubeconfig().display());
    std::io::stdout().flush()?;
    std::future::pending::<()>().await;
    Ok(())
}
