//! One row of the research's tables a test: status snippets in, the sentence out.

mod custom;
mod jobs;
mod kueue;
mod pods;
mod whole;

/// What a scene says.
macro_rules! says {
    ($scene:expr, @$text:literal) => {
        insta::assert_snapshot!($scene.says(), @$text)
    };
}
use says;
