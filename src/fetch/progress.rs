//! What is being done and how far it is: on a terminal, and nowhere else.

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::os::parallel::side_by_side;

/// How many things are fetched side by side.
const SIDE_BY_SIDE: usize = 8;

/// One line on standard error that shows what is being waited for.
pub(crate) struct Progress {
    bar: ProgressBar,
    waiting: Mutex<Vec<String>>,
}

impl Progress {
    /// Makes a progress line (`doing`: `fetching`), drawn only if standard error is a terminal and `quiet` is not set.
    pub(crate) fn new(doing: &str, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Progress::on(target, doing)
    }

    fn on(target: ProgressDrawTarget, doing: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = format!("{{spinner}} {doing} {{pos}}/{{len}} {{wide_msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Progress { bar, waiting: Mutex::default() }
    }

    /// Does the jobs side by side, and shows what each is doing by its label. Clears the line.
    pub(super) fn each<J: Sync, D: Send>(
        &self,
        jobs: &[J],
        label: impl Fn(&J) -> String + Sync,
        one: impl Fn(&J) -> D + Sync,
    ) -> Vec<D> {
        self.expect(jobs.len());
        let done = side_by_side(jobs, SIDE_BY_SIDE, |_, job| {
            let what = label(job);
            self.begin(&what);
            let done = one(job);
            self.end(&what);
            done
        });
        self.clear();
        done
    }

    /// Announces `count` more things to do.
    pub(crate) fn expect(&self, count: usize) {
        self.bar.inc_length(count as u64);
        if count > 0 {
            self.bar.enable_steady_tick(Duration::from_millis(100));
        }
    }

    /// Announces that `what` (without secrets) has begun.
    pub(crate) fn begin(&self, what: &str) {
        self.update(|waiting| waiting.push(what.to_owned()));
    }

    /// Announces that `what` is done, or has failed.
    pub(crate) fn end(&self, what: &str) {
        self.bar.inc(1);
        self.update(|waiting| {
            if let Some(at) = waiting.iter().position(|one| one == what) {
                waiting.remove(at);
            }
        });
    }

    /// Clears the line while something else talks to the person at the terminal.
    pub(crate) fn suspend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn update(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut waiting = self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut waiting);
        self.bar.set_message(waiting.first().cloned().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::Progress;

    /// A terminal that keeps everything that was ever written to it.
    #[derive(Debug, Clone, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_line_counts_finished_work_and_names_the_rest() {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
        let progress = Progress::on(target, "building");
        let drawn = || std::mem::take(&mut *paper.0.lock().unwrap());
        progress.expect(240);
        progress.begin("clusters/dev/apps");
        progress.begin("clusters/prod/apps");
        let line = drawn();
        assert!(line.contains("building 0/240 clusters/dev/apps"), "{line:?}");
        progress.end("clusters/dev/apps");
        let line = drawn();
        assert!(line.contains("building 1/240 clusters/prod/apps"), "{line:?}");
        progress.clear();
    }
}
