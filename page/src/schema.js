// Completion and hover texts from a JSON Schema. The place of the cursor is computed from the indentation, because an
// unfinished text often cannot be parsed.
const KEY = /^(\s*)((?:- +)?)(?:"([^"]*)"|'([^']*)'|([^\s#'"-][^:#]*?))\s*:(?:\s+(.*))?$/;
const ITEM = "[]";
// The key of a ConfigMap's data that has the policy.
const EMBEDDED = "policy.yaml";

// The keys from the root to the key or list item that begins at `column` of `line`. ITEM stands for a list item.
function pathTo(doc, line, column, inItem) {
  const path = inItem ? [ITEM] : [];
  let atDash = inItem;
  for (let number = line - 1; number >= 1; number--) {
    const { text } = doc.line(number);
    if (/^---/.test(text)) break;
    const match = KEY.exec(text);
    const bare = match ? null : /^(\s*)- /.exec(text);
    if (!match && !bare) continue;
    const start = (match ?? bare)[1].length;
    const dash = bare ? 2 : match[2].length;
    const key = match && (match[3] ?? match[4] ?? match[5]);
    const at = start + dash;
    if (match && (at < column || (at === column && atDash && !dash))) {
      path.unshift(key);
      column = start;
      atDash = dash > 0;
      if (dash) path.unshift(ITEM);
    } else if (dash && at === column && !atDash) {
      path.unshift(ITEM);
      column = start;
      atDash = true;
    }
    if (column === 0 && !atDash) break;
  }
  return path.slice(path.indexOf(EMBEDDED) + 1);
}

// The schemas that can apply to a node, with references and choices (anyOf, oneOf, allOf) resolved.
function plain(node, root) {
  if (!node || node === true) return [];
  const inner = node.$ref ? plain(root.$defs?.[node.$ref.replace("#/$defs/", "")], root) : [];
  const choices = [...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])];
  return [node, ...inner, ...choices.flatMap((choice) => plain(choice, root))];
}

function nodesAt(schema, path) {
  let nodes = plain(schema, schema);
  for (const step of path) {
    nodes = nodes.flatMap((node) =>
      plain(step === ITEM ? node.items : (node.properties?.[step] ?? node.additionalProperties), schema),
    );
  }
  return nodes;
}

const first = (nodes, key) => nodes.find((node) => node[key] !== undefined)?.[key];

function kind(nodes) {
  const values = valuesOf(nodes);
  if (values.length) return values.join(" | ");
  return [...new Set(nodes.flatMap((node) => node.type ?? []))].filter((type) => type !== "null").join(" or ");
}

function valuesOf(nodes) {
  const values = nodes.flatMap((node) => node.enum ?? (node.const === undefined ? [] : [node.const]));
  if (nodes.some((node) => node.type === "boolean")) values.push(true, false);
  return [...new Set(values)].filter((value) => value !== null).map(String);
}

export function completions(schema) {
  return ({ state, pos, explicit }) => {
    const line = state.doc.lineAt(pos);
    const before = line.text.slice(0, pos - line.from);
    const value = /^(\s*)((?:- +)?)([^\s:#]+):\s+([^\s#]*)$/.exec(before);
    if (value) {
      const [, indent, dash, key, typed] = value;
      const path = pathTo(state.doc, line.number, indent.length, Boolean(dash));
      const options = valuesOf(nodesAt(schema, [...path, key])).map((label) => ({ label, type: "enum" }));
      return options.length ? { from: pos - typed.length, options } : null;
    }
    const written = /^(\s*)((?:- +)?)([\w./-]*)$/.exec(before);
    if (!written || (!written[3] && !explicit)) return null;
    const [, indent, dash, typed] = written;
    const path = pathTo(state.doc, line.number, indent.length, Boolean(dash));
    const options = nodesAt(schema, path).flatMap((node) =>
      Object.entries(node.properties ?? {}).map(([label, inner]) => option(label, plain(inner, schema), indent + dash)),
    );
    return options.length ? { from: pos - typed.length, options, validFor: /^[\w./-]*$/ } : null;
  };
}

function option(label, nodes, before) {
  const type = first(nodes, "type");
  const below = `\n${" ".repeat(before.length + 2)}`;
  const apply = type === "object" ? `${label}:${below}` : type === "array" ? `${label}:${below}- ` : `${label}: `;
  return { label, type: "property", detail: kind(nodes), info: first(nodes, "description"), apply };
}

// The description of the key at a position: {from, to, text}.
export function description(schema, doc, position) {
  const line = doc.lineAt(position);
  const match = KEY.exec(line.text);
  if (!match) return null;
  const key = match[3] ?? match[4] ?? match[5];
  const from = line.from + line.text.indexOf(key);
  if (position < from || position > from + key.length) return null;
  const path = pathTo(doc, line.number, match[1].length, match[2].length > 0);
  const nodes = nodesAt(schema, [...path, key]);
  const text = [`${key}: ${kind(nodes) || "any value"}`, first(nodes, "description")].filter(Boolean).join(". ");
  return nodes.length ? { from, to: from + key.length, text } : null;
}
