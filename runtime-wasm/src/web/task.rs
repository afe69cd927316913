//! Tasks: futures of this module that wait for promises of the page.
//!
//! One task waits for one promise at a time, so a task needs no waker: the promise's callback names
//! the task to continue. That, and one callback for all promises in place of two closures for each,
//! is what makes this smaller than a general executor.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use js_sys::Promise;
use wasm_bindgen::JsValue;

use super::watch;

type Outcome = Result<JsValue, JsValue>;

struct Task {
    number: u32,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

thread_local! {
    static WAITING: RefCell<Vec<Task>> = const { RefCell::new(Vec::new()) };
    static STARTED: Cell<u32> = const { Cell::new(0) };
    /// The task that runs, and the outcome of the promise that it waited for.
    static RUNNING: RefCell<(u32, Option<Outcome>)> = const { RefCell::new((0, None)) };
}

/// Starts a task. It runs at once, up to the first promise that it waits for.
pub(crate) fn spawn(future: impl Future<Output = ()> + 'static) {
    let number = STARTED.get() + 1;
    STARTED.set(number);
    run(
        Task {
            number,
            future: Box::pin(future),
        },
        None,
    );
}

/// A promise that a task waits for was settled.
pub(crate) fn resume(number: u32, outcome: Outcome) {
    let task = WAITING.with_borrow_mut(|waiting| {
        let at = waiting.iter().position(|task| task.number == number)?;
        Some(waiting.swap_remove(at))
    });
    if let Some(task) = task {
        run(task, Some(outcome));
    }
}

fn run(mut task: Task, outcome: Option<Outcome>) {
    let outer = RUNNING.replace((task.number, outcome));
    let poll = task
        .future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    RUNNING.set(outer);
    if poll.is_pending() {
        WAITING.with_borrow_mut(|waiting| waiting.push(task));
    }
}

/// Waits for the promise. May be awaited only within a task.
pub(crate) async fn settled(promise: &Promise) -> Outcome {
    let mut watched = false;
    poll_fn(|_| {
        if watched {
            if let Some(outcome) = RUNNING.with_borrow_mut(|running| running.1.take()) {
                return Poll::Ready(outcome);
            }
        } else {
            watched = true;
            watch(promise, RUNNING.with_borrow(|running| running.0));
        }
        Poll::Pending
    })
    .await
}
