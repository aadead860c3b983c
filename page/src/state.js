// Stores the three texts in the fragment of the page's address, which browsers never send to a server.

// Maximum length of the fragment. If it is longer, the objects of the cluster are left out.
const LONGEST = 60_000;

export async function save(texts) {
  let packed = await pack(texts);
  if (packed.length > LONGEST) packed = await pack({ ...texts, cluster: "" });
  if (packed.length <= LONGEST) history.replaceState(null, "", `#${packed}`);
}

export async function load() {
  try {
    return location.hash.length > 1 ? texts(await unpack(location.hash.slice(1))) : null;
  } catch {
    return null; // an incomplete link
  }
}

// A link may contain any values. Values that are not texts are left out.
function texts(linked) {
  return Object.fromEntries(Object.entries(linked).filter(([, text]) => typeof text === "string"));
}

async function pack(value) {
  const stream = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).json();
}
