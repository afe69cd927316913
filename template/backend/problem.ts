// Problem Details (RFC 9457): what `platform.fetch` makes a PlatformError of.

/** An answer whose `detail` is a sentence for the player. `slug` is what
 * `error.is(slug)` asks for in the page. */
export function problem(
  status: number,
  slug: string,
  title: string,
  detail: string,
  headers: Record<string, string> = {},
): Response {
  return new Response(JSON.stringify({ type: `urn:platform:${slug}`, title, status, detail }), {
    status,
    headers: {
      "Content-Type": "application/problem+json",
      "Cache-Control": "no-store",
      ...headers,
    },
  });
}
