//! One row of the research's tables a test: status snippets in, the sentence out.

mod jobs;
mod pods;

/// What a scene says.
macro_rules! says {
    ($scene:expr, @$text:literal) => {
        insta::assert_snapshot!($scene.says(), @$text)
    };
}
use says;
