// `/admin/guests`: the network addresses that have guests, and the guests of one address.

import { fillList, listItem, open, playerRow, refuse, withQuery } from "./admin.js";
import { allById, byId, count, make, moment, userText } from "./dom.js";

/** @import { Schemas } from "../types/api.d.ts" */

const PATH = "/api/admin/guests";

/** @param {Schemas["HoldingAddress"]} address */
const addressRow = ({ address, guests, seen_at }) =>
  listItem(make("a", { href: withQuery("/admin/guests", { address }) }, userText(address)), [
    `${count(guests, "guest", "guests")} · last seen `,
    moment(seen_at),
  ]);

/**
 * @param {Schemas["HeldGuests"]} held
 * @param {string} address
 */
const draw = ({ cap, addresses, guests }, address) => {
  byId("cap").textContent = cap
    ? `One address may have ${count(cap, "guest", "guests")} at the same time (PLATFORM_GUESTS_PER_ADDRESS). A guest who signs in no longer counts.`
    : "One address may have any number of guests (PLATFORM_GUESTS_PER_ADDRESS).";
  byId("back").hidden = !address;
  byId("list-heading").textContent = address
    ? "Its guests, newest first"
    : "Addresses with the most guests";
  byId("none").textContent = address ? "This address has no guests." : "No address has guests.";
  fillList("list", "none", address ? guests.map(playerRow) : addresses.map(addressRow));
};

open(async (session) => {
  const [form, field, error] = allById("find", "query", "query-error");
  /** @param {string} address */
  const find = async (address) => draw(await session.ask(withQuery(PATH, { address })), address);
  field.value = new URLSearchParams(location.search).get("address") ?? "";
  form.onsubmit = async (event) => {
    event.preventDefault();
    const address = field.value.trim();
    try {
      await find(address);
      error.textContent = "";
      history.replaceState(null, "", withQuery(location.pathname, { address }));
    } catch (refusal) {
      refuse(refusal, error);
    }
  };
  await find(field.value);
});
