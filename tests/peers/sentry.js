// An error monitor that is started as its documentation begins.
import { init } from "@sentry/browser";

init({ dsn: "https://key@monitor.localhost/1" });
