/** Records of a spool that are values of a JSON document with their paths. */

/** Returns a record: the path on one line, and the text of the value. */
export function pathRecord(path: readonly string[], content: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${JSON.stringify(path)}\n`), content])
}

export interface PathRecord {
  readonly path: readonly string[]
  readonly content: Uint8Array
  /** Path and text as one line of JSON. */
  readonly raw: Uint8Array
}

/** Reads a record of `pathRecord`. */
export function readPathRecord(record: Uint8Array): PathRecord {
  const end = record.indexOf(10)
  const path = JSON.parse(Buffer.from(record.subarray(0, end)).toString()) as readonly string[]
  const content = record.subarray(end + 1)
  const text = Buffer.from(content).toString()
  return { path, content, raw: Buffer.from(JSON.stringify({ path: path.join('/'), text })) }
}
