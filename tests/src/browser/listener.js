// Reports to the tests' proxy what happens in a page: every console call,
// uncaught error and unhandled rejection. It runs before the page's own first
// script, in an engine whose driver has no events for them.
(() => {
  const said = "/.well-known/platform-tests/said";
  const Request = XMLHttpRequest;
  const later = setTimeout.bind(window);
  /** @type {{ level: string, kind: string, text: string, event?: Event }[]} */
  let lines = [];
  let leaving = false;

  /** @param {unknown} value */
  const text = (value) => {
    try {
      if (value instanceof Error) return `${value.name}: ${value.message}`.slice(0, 2000);
      if (typeof value === "object" && value !== null) return "[object]";
      return String(value).slice(0, 2000);
    } catch {
      return "[unreadable]";
    }
  };

  // At once and without `keepalive`, whose budget belongs to the page.
  const send = () => {
    const due = lines.filter((line) => !line.event?.defaultPrevented);
    lines = [];
    if (!due.length) return;
    const request = new Request();
    request.open("POST", said, false);
    try {
      request.send(JSON.stringify(due.map(({ level, kind, text }) => ({ level, kind, text }))));
    } catch {
      // The proxy has ended, and so has the test.
    }
  };

  /** @param {(typeof lines)[number]} line */
  const note = (line) => {
    lines.push(line);
    if (leaving) send();
    else if (lines.length === 1) later(send, 0);
  };

  const levels = {
    assert: "error",
    debug: "debug",
    error: "error",
    info: "info",
    log: "info",
    trace: "debug",
    warn: "warn",
  };
  const methods = /** @type {(keyof typeof levels)[]} */ (Object.keys(levels));
  for (const name of methods) {
    const level = levels[name];
    // A proxy keeps the native function's name, length and text.
    console[name] = new Proxy(console[name], {
      apply(native, self, given) {
        const parts = name === "assert" ? given.slice(1) : given;
        if (name !== "assert" || !given[0]) {
          note({ level, kind: "console", text: parts.map(text).join(" ") });
        }
        return Reflect.apply(native, self, given);
      },
    });
  }

  // A handler of the page may still prevent these reports.
  addEventListener(
    "error",
    (event) => {
      if (event instanceof ErrorEvent) {
        note({ level: "error", kind: "javascript", text: event.message, event });
      }
    },
    true,
  );
  addEventListener(
    "unhandledrejection",
    (event) => {
      // When this engine leaves a page, it ends the page's requests and rejects
      // their promises; other engines do not.
      if (leaving && event.reason instanceof TypeError) return;
      note({ level: "error", kind: "javascript", text: `Unhandled: ${text(event.reason)}`, event });
    },
    true,
  );
  addEventListener("pagehide", () => {
    leaving = true;
    send();
  });
  addEventListener("pageshow", () => {
    leaving = false;
  });

  Object.defineProperty(window, Symbol.for("platform-tests"), { value: send });
  document.currentScript?.remove();
})();
