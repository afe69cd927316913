// A game's backend in Java, with the JDK (17 or later) and Jackson:
//
//   java --class-path <jackson-databind, -core and -annotations> Server.java

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigInteger;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;

public final class Server {
  /** Seconds that two clocks may differ. */
  private static final long LEEWAY = 60;

  /** Seconds that a token may live. */
  private static final long LONGEST = 86_400;

  static {
    // For KeySet, which names the host itself.
    System.setProperty("jdk.httpclient.allowRestrictedHeaders", "host");
  }

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Base64.Decoder BASE64 = Base64.getUrlDecoder();

  /** The token does not pass. */
  static final class Refused extends Exception {
    Refused(String reason) {
      super(reason);
    }
  }

  /** There are no keys to verify with. */
  static final class NoKeySet extends Exception {}

  /** A player. Key data on `sub`; `username` can change. */
  record Player(String sub, String username, boolean is_anon) {}

  /** The keys, fetched for the first token, for an unknown kid, and every ten minutes. */
  static final class KeySet {
    private static final Duration REFETCH = Duration.ofSeconds(30);
    /** After it keys are fetched again, and revoked ones forgotten. */
    private static final Duration REFRESH = Duration.ofSeconds(600);
    /** Bytes of a key set. */
    private static final int LARGEST = 65_536;
    private final HttpClient client =
        HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(2)).build();
    private final HttpRequest request;
    private Map<String, PublicKey> keys = Map.of();
    private Long asked;
    private Long fetched;

    /**
     * Names under localhost are this machine (RFC 6761 §6.3), but not every system's resolver
     * knows, and HttpClient has no resolver to choose.
     */
    KeySet(URI url) throws URISyntaxException {
      String host = url.getHost();
      HttpRequest.Builder asked = HttpRequest.newBuilder(url);
      if (host.endsWith(".localhost")) {
        asked.uri(new URI("http", null, "127.0.0.1", url.getPort(), url.getPath(), url.getQuery(), null));
        asked.header("Host", url.getAuthority());
      }
      request = asked.timeout(Duration.ofSeconds(5)).build();
    }

    synchronized PublicKey key(String kid) throws Refused, NoKeySet {
      Duration wait = keys.isEmpty() ? Duration.ofSeconds(1) : REFETCH;
      boolean wanted = !keys.containsKey(kid) || isPast(fetched, REFRESH);
      if (wanted && isPast(asked, wait)) {
        try {
          keys = fetch();
          fetched = System.nanoTime();
        } catch (IOException | GeneralSecurityException | IllegalArgumentException | InterruptedException error) {
          System.err.println("the key set cannot be fetched: " + reason(error));
        }
        asked = System.nanoTime();
      }
      if (keys.isEmpty()) throw new NoKeySet();
      if (!keys.containsKey(kid)) throw new Refused("unknown kid");
      return keys.get(kid);
    }

    /** HttpClient says only that there is no connection. */
    private String reason(Exception error) {
      for (Throwable cause = error; cause != null; cause = cause.getCause()) {
        if (cause instanceof UnresolvedAddressException) {
          return "could not resolve " + request.uri().getHost() + ": the system knows no such name";
        }
      }
      return error.toString();
    }

    private static boolean isPast(Long since, Duration wait) {
      return since == null || System.nanoTime() - since >= wait.toNanos();
    }

    private Map<String, PublicKey> fetch()
        throws IOException, GeneralSecurityException, InterruptedException {
      // HttpClient follows no redirect: the party that can redirect must not choose the keys.
      HttpResponse<InputStream> response = client.send(request, HttpResponse.BodyHandlers.ofInputStream());
      byte[] document;
      try (InputStream body = response.body()) {
        document = body.readNBytes(LARGEST + 1);
      }
      if (response.statusCode() != 200) throw new IOException("status " + response.statusCode());
      if (document.length > LARGEST) throw new IOException("it has more than 64 KiB");
      AlgorithmParameters curve = AlgorithmParameters.getInstance("EC");
      curve.init(new ECGenParameterSpec("secp256r1"));
      ECParameterSpec p256 = curve.getParameterSpec(ECParameterSpec.class);
      Map<String, PublicKey> found = new HashMap<>();
      for (JsonNode jwk : JSON.readTree(document).path("keys")) {
        boolean ours = jwk.path("kty").asText().equals("EC") && jwk.path("crv").asText().equals("P-256");
        if (!ours || !jwk.path("kid").isTextual()) continue;
        BigInteger x = new BigInteger(1, BASE64.decode(jwk.path("x").asText()));
        BigInteger y = new BigInteger(1, BASE64.decode(jwk.path("y").asText()));
        ECPublicKeySpec point = new ECPublicKeySpec(new ECPoint(x, y), p256);
        found.put(jwk.path("kid").asText(), KeyFactory.getInstance("EC").generatePublic(point));
      }
      if (found.isEmpty()) throw new IOException("it has no key for ES256");
      return found;
    }
  }

  private final String issuer = variable("AUTH_ISSUER");
  private final String audience = variable("AUTH_AUDIENCE");
  private final KeySet keys;

  Server() throws URISyntaxException {
    keys = new KeySet(new URI(variable("AUTH_JWKS_URL")));
  }

  Player verify(String token) throws Refused, NoKeySet {
    String[] parts = token.split("\\.", -1);
    if (parts.length != 3 || token.length() > 8192) throw new Refused("not a compact JWT");
    try {
      JsonNode header = JSON.readTree(BASE64.decode(parts[0]));
      // This program chooses the algorithm, not the header.
      boolean ours = header.path("alg").asText().equals("ES256") && header.path("typ").asText().equals("JWT");
      if (!ours || header.has("crit") || !header.path("kid").isTextual()) throw new Refused("no game token");
      PublicKey key = keys.key(header.path("kid").asText());
      byte[] rs = BASE64.decode(parts[2]);
      // Java 15 to 18, without their updates, take a signature of zeros for every text (CVE-2022-21449).
      boolean inRange = rs.length == 64 && isInRange(key, rs, 0) && isInRange(key, rs, 32);
      if (!inRange) throw new Refused("the signature is none");
      Signature signature = Signature.getInstance("SHA256withECDSAinP1363Format");
      signature.initVerify(key);
      signature.update((parts[0] + "." + parts[1]).getBytes(StandardCharsets.US_ASCII));
      if (!signature.verify(rs)) throw new Refused("the signature is wrong");
      return player(JSON.readTree(BASE64.decode(parts[1])));
    } catch (IOException | GeneralSecurityException | IllegalArgumentException error) {
      throw new Refused(error.getMessage());
    }
  }

  /** Whether r or s, which begins at an index, is from 1 to the order of the curve (FIPS 186-5, 6.4.2). */
  private static boolean isInRange(PublicKey key, byte[] rs, int begin) {
    BigInteger number = new BigInteger(1, Arrays.copyOfRange(rs, begin, begin + 32));
    BigInteger order = ((ECPublicKey) key).getParams().getOrder();
    return number.signum() > 0 && number.compareTo(order) < 0;
  }

  private Player player(JsonNode claims) throws Refused {
    long now = System.currentTimeMillis() / 1000;
    if (!text(claims, "iss").equals(issuer)) throw new Refused("another issuer");
    // A game token is for exactly one audience, so a list is refused.
    if (!text(claims, "aud").equals(audience)) throw new Refused("another audience");
    if (now >= seconds(claims, "exp") + LEEWAY) throw new Refused("expired");
    if (seconds(claims, "iat") > now + LEEWAY) throw new Refused("issued in the future");
    if (seconds(claims, "exp") - seconds(claims, "iat") > LONGEST) throw new Refused("it lives too long");
    if (claims.has("nbf") && seconds(claims, "nbf") > now + LEEWAY) throw new Refused("not yet valid");
    if (text(claims, "sub").isBlank() || !claims.path("is_anon").isBoolean()) throw new Refused("a claim is missing");
    return new Player(text(claims, "sub"), text(claims, "username"), claims.get("is_anon").asBoolean());
  }

  private static String text(JsonNode claims, String name) throws Refused {
    if (!claims.path(name).isTextual()) throw new Refused(name + " is no text");
    return claims.get(name).asText();
  }

  private static long seconds(JsonNode claims, String name) throws Refused {
    if (!claims.path(name).canConvertToLong() || !claims.get(name).isIntegralNumber()) {
      throw new Refused(name + " is no whole number");
    }
    if (claims.get(name).asLong() < 0) throw new Refused(name + " is before 1970");
    return claims.get(name).asLong();
  }

  void answer(HttpExchange exchange) throws IOException {
    String[] bearer = exchange.getRequestHeaders().getOrDefault("Authorization", java.util.List.of("")).get(0).split(" +");
    if (bearer.length != 2 || !bearer[0].equalsIgnoreCase("bearer")) {
      problem(exchange, 401, "not-signed-in", "This needs a player.");
      return;
    }
    try {
      Player player = verify(bearer[1]);
      if (exchange.getRequestURI().getPath().equals("/api/me")) send(exchange, 200, "application/json", player);
      else problem(exchange, 404, "not-found", "There is nothing here.");
    } catch (NoKeySet error) {
      problem(exchange, 503, "unavailable", "Players cannot be verified at the moment.");
    } catch (Refused error) {
      System.err.println("refused: " + error.getMessage());
      problem(exchange, 401, "not-signed-in", "The game token is not valid.");
    }
  }

  private static void problem(HttpExchange exchange, int status, String slug, String detail) throws IOException {
    if (status == 401) exchange.getResponseHeaders().set("WWW-Authenticate", "Bearer");
    Map<String, Object> body = Map.of("type", "urn:platform:" + slug, "status", status, "detail", detail);
    send(exchange, status, "application/problem+json", body);
  }

  private static void send(HttpExchange exchange, int status, String type, Object body) throws IOException {
    byte[] bytes = JSON.writeValueAsBytes(body);
    exchange.getResponseHeaders().set("Content-Type", type);
    exchange.getResponseHeaders().set("Cache-Control", "no-store");
    exchange.sendResponseHeaders(status, bytes.length);
    try (var out = exchange.getResponseBody()) {
      out.write(bytes);
    }
  }

  private static String variable(String name) {
    String value = System.getenv(name);
    if (value == null || value.isEmpty()) throw new IllegalStateException(name + " is not set");
    return value;
  }

  public static void main(String[] args) throws IOException, URISyntaxException {
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8788"));
    HttpServer http = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    http.setExecutor(Executors.newCachedThreadPool());
    Server server = new Server();
    http.createContext("/", server::answer);
    http.start();
  }
}
