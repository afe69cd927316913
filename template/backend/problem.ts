// Problem Details (RFC 9457). `platform.fetch` turns them into a PlatformError.

/** Returns a response whose `detail` is a sentence for the player. The page
 * recognises it with `error.is(slug)`. */
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
