/** Stored JSON to plain JavaScript values. */

const { keys } = Object
const { isArray } = Array

/** Turns what JSON.parse made of Stored JSON into values, in place. */
export function decode(json: unknown): unknown {
  if (typeof json !== 'object' || json === null) return json
  if (isArray(json)) {
    for (let i = 0; i < json.length; i++) {
      const item: unknown = json[i]
      if (typeof item === 'object' && item !== null) json[i] = decode(item)
    }
    return json
  }
  const object = json as Record<string, unknown>
  const names = keys(object)
  if (names.length === 1 && names[0]![0] === '$' && names[0]![1] !== '$') {
    return decodeMarked(names[0]!, object[names[0]!] as string)
  }
  let escaped = false
  for (const name of names) {
    const item = object[name]
    if (typeof item === 'object' && item !== null) object[name] = decode(item)
    if (name[0] === '$') escaped = true
  }
  return escaped ? withoutEscapes(object, names) : object
}

function decodeMarked(mark: string, text: string): unknown {
  switch (mark) {
    case '$i':
    case '$t':
      return BigInt(text)
    case '$b':
      return Uint8Array.fromBase64(text, { alphabet: 'base64url' })
    default:
      return text
  }
}

function withoutEscapes(object: Record<string, unknown>, names: readonly string[]) {
  const result: Record<string, unknown> = {}
  for (const name of names) result[name[0] === '$' ? name.slice(1) : name] = object[name]
  return result
}
