// Runs the check of docs/alerts.md that needs no library. Reads the address of its module, a secret
// and a delivered request as JSON from standard input. Prints which requests it takes for genuine:
// that one, changed ones, and others that the library of the specification signed.

import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

const { module, secret, headers, body } = JSON.parse(await text(process.stdin));
const { isGenuine } = await import(module);

const signed = (secondsAgo, key = secret) => {
  const at = new Date(Date.now() - secondsAgo * 1000);
  const stamp = String(Math.floor(at.getTime() / 1000));
  const signature = new Webhook(key).sign("alert-1-game", at, body);
  return {
    "webhook-id": "alert-1-game",
    "webhook-timestamp": stamp,
    "webhook-signature": signature,
  };
};
const given = headers["webhook-signature"];
const check = (changed, text = body) => isGenuine({ ...headers, ...changed }, text, secret);
const other = `whsec_${Buffer.alloc(32).toString("base64")}`;
console.log(
  JSON.stringify({
    delivered: check({}),
    "signed by the library": check(signed(0)),
    "two signatures, as while a secret is replaced": check({
      "webhook-signature": `v1,AAAA ${given}`,
    }),
    "another body": check({}, `${body} `),
    "another id": check({ "webhook-id": "alert-2-game" }),
    "another secret": check(signed(0, other)),
    "no signature": check({ "webhook-signature": undefined }),
    "no time": check({ "webhook-timestamp": undefined }),
    old: check(signed(600)),
    "of the future": check(signed(-600)),
  }),
);
