//! The page: keys, the canvas, and what is said below it.

use std::cell::RefCell;
use std::rc::Rc;

use platform_game::PlatformError;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::spawn_local;
use web_sys::{
    CanvasRenderingContext2d, Document, HtmlCanvasElement, HtmlElement, KeyboardEvent, Window,
};

use crate::account;
use crate::round::Round;

/// The game's state, which keys and frames share.
type Shared = Rc<RefCell<Round>>;

/// The elements of the page.
#[derive(Clone)]
struct Page {
    window: Window,
    document: Document,
    pen: CanvasRenderingContext2d,
}

/// Starts the game as soon as the module is loaded.
///
/// # Errors
/// The page lacks an element.
#[wasm_bindgen(start)]
pub fn start() -> Result<(), JsValue> {
    let page = Page::find().ok_or("the page has no canvas")?;
    let round = Shared::default();
    page.on_key(&round)?;
    page.on_click("log-in", || drop(platform_game::log_in()))?;
    let leaving = page.clone();
    page.on_click("sign-out", move || {
        let page = leaving.clone();
        spawn_local(async move {
            if let Err(error) = platform_game::sign_out().await {
                page.fail(&error);
            }
        });
    })?;
    let changed = page.clone();
    platform_game::on_player_change(move || changed.load()).forget();
    page.load();
    page.draw_for_ever(round)
}

impl Page {
    fn find() -> Option<Self> {
        let window = web_sys::window()?;
        let document = window.document()?;
        let canvas = document.query_selector("canvas").ok()??;
        let canvas: HtmlCanvasElement = canvas.dyn_into().ok()?;
        let pen = canvas.get_context("2d").ok()??.dyn_into().ok()?;
        Some(Self {
            window,
            document,
            pen,
        })
    }

    /// Writes a text into an element.
    fn write(&self, id: &str, text: &str) {
        if let Some(element) = self.document.get_element_by_id(id) {
            element.set_text_content(Some(text));
        }
    }

    /// Says something below the canvas, and to tests.
    fn say(&self, words: &str) {
        self.write("words", words);
        if let Some(body) = self.document.body() {
            let _ = body.dataset().set("state", words);
        }
    }

    fn fail(&self, error: &PlatformError) {
        platform_game::report_error("a call failed", &error.message());
        self.say(&error.message());
    }

    /// Shows who plays.
    fn load(&self) {
        let page = self.clone();
        spawn_local(async move {
            match account::load().await {
                Ok((player, standing)) => {
                    page.write("name", &player.username);
                    let kind = if player.is_guest { "guest" } else { "player" };
                    page.say(&format!("A {kind} with {} points is ready.", standing.best));
                }
                Err(error) if error.asks_for_login() => drop(platform_game::log_in()),
                Err(error) => page.fail(&error),
            }
        });
    }

    /// Sends a round that is over.
    fn save(&self, points: u32) {
        let page = self.clone();
        spawn_local(async move {
            match account::save(points).await {
                Ok(standing) => page.say(&format!("The best round has {} points.", standing.best)),
                Err(error) => page.fail(&error),
            }
        });
    }

    fn on_key(&self, round: &Shared) -> Result<(), JsValue> {
        let (page, round) = (self.clone(), Rc::clone(round));
        let pressed = Closure::<dyn FnMut(KeyboardEvent)>::new(move |event: KeyboardEvent| {
            if event.key() != " " {
                return;
            }
            event.prevent_default();
            let mut round = round.borrow_mut();
            if round.catch() {
                page.save(round.points);
                *round = Round::default();
            } else {
                page.say(&format!("Caught {}.", round.caught));
            }
        });
        let listener = pressed.as_ref().unchecked_ref();
        self.window
            .add_event_listener_with_callback("keydown", listener)?;
        pressed.forget();
        Ok(())
    }

    fn on_click(&self, id: &str, handler: impl FnMut() + 'static) -> Result<(), JsValue> {
        let button = self
            .document
            .get_element_by_id(id)
            .ok_or("a button is missing")?;
        let button: HtmlElement = button.dyn_into().map_err(JsValue::from)?;
        let clicked = Closure::<dyn FnMut()>::new(handler);
        button.set_onclick(Some(clicked.as_ref().unchecked_ref()));
        clicked.forget();
        Ok(())
    }

    /// Lets the spark fall and draws it, in every frame.
    fn draw_for_ever(self, round: Shared) -> Result<(), JsValue> {
        let frame: Rc<RefCell<Option<Closure<dyn FnMut()>>>> = Rc::default();
        let again = Rc::clone(&frame);
        let window = self.window.clone();
        *frame.borrow_mut() = Some(Closure::new(move || {
            let mut round = round.borrow_mut();
            round.fall();
            self.pen.clear_rect(0.0, 0.0, 300.0, 300.0);
            self.pen
                .fill_rect(140.0, f64::from(round.height) * 3.0, 20.0, 20.0);
            let _ = again
                .borrow()
                .as_ref()
                .map(|frame| next(&self.window, frame));
        }));
        match &*frame.borrow() {
            Some(frame) => next(&window, frame),
            None => Ok(()),
        }
    }
}

/// Calls a function in the next frame.
fn next(window: &Window, frame: &Closure<dyn FnMut()>) -> Result<(), JsValue> {
    let frame = frame.as_ref().unchecked_ref();
    window.request_animation_frame(frame).map(drop)
}
