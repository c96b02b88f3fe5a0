//! Shows on a terminal, and nowhere else, which work is under way and how much is done.

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::os::parallel::{locked, side_by_side};

/// How many requests run in parallel.
pub(super) const SIDE_BY_SIDE: usize = 8;

/// A line on standard error with the work that is under way.
pub(crate) struct Progress {
    bar: ProgressBar,
    waiting: Mutex<Vec<(usize, String)>>,
}

impl Progress {
    /// Makes a progress line. `doing` is its verb, such as `fetching`. It is drawn only if standard error is a terminal
    /// and `quiet` is not set.
    pub(crate) fn new(doing: &str, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Progress::on(target, doing)
    }

    /// Makes a progress line that is drawn on `target`.
    fn on(target: ProgressDrawTarget, doing: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = format!("{{spinner}} {doing} {{pos}}/{{len}} {{wide_msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Progress { bar, waiting: Mutex::default() }
    }

    /// Runs `work` on each job with its index, at most `most` in parallel, and shows how many are done and the label of
    /// one that runs. Returns the results in the order of the jobs. Clears the line at the end.
    pub(crate) fn each<J: Sync, D: Send>(
        &self,
        most: usize,
        jobs: &[J],
        label: impl Fn(&J) -> String + Sync,
        work: impl Fn(usize, &J) -> D + Sync,
    ) -> Vec<D> {
        self.bar.inc_length(jobs.len() as u64);
        // A line that is drawn for nothing flickers.
        if !jobs.is_empty() {
            self.bar.enable_steady_tick(Duration::from_millis(100));
        }
        let done = side_by_side(jobs, most, |number, job| {
            let line = (number, label(job));
            self.update(|waiting| waiting.push(line.clone()));
            let done = work(number, job);
            self.bar.inc(1);
            self.update(|waiting| waiting.retain(|other| *other != line));
            done
        });
        self.bar.finish_and_clear();
        done
    }

    /// Sleeps, and shows why.
    pub(super) fn pause(&self, why: &str, time: Duration) {
        let shown = (usize::MAX, why.to_owned());
        self.update(|waiting| waiting.insert(0, shown.clone()));
        std::thread::sleep(time);
        self.update(|waiting| waiting.retain(|line| *line != shown));
    }

    /// Clears the line while something else talks to the person at the terminal.
    pub(crate) fn suspend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// Changes the list of running jobs, and shows the label of the first one.
    fn update(&self, change: impl FnOnce(&mut Vec<(usize, String)>)) {
        let mut waiting = locked(&self.waiting);
        change(&mut waiting);
        self.bar.set_message(waiting.first().map_or(String::new(), |(_, label)| label.clone()));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::Progress;

    /// A terminal that keeps everything that was written to it.
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
        let jobs = ["clusters/dev/apps", "clusters/prod/apps"];
        let lines = progress.each(1, &jobs, |job| (*job).to_owned(), |_, _| drawn());
        for (number, (line, job)) in lines.iter().zip(jobs).enumerate() {
            assert!(line.contains(&format!("building {number}/2 {job}")), "{line:?}");
        }
    }
}
