/** Names that tables and fields get where those of the export are not allowed here. */
import { isTableName } from '../../../value/ids.ts'
import { FIELD_NAME, INDEX_NAME, RESERVED_TABLES } from '../../../value/manifest.ts'

const LENGTH_MAX = 64

/** Returns a free name for a table, and takes it. */
export function tableName(source: string, taken: Set<string>): string {
  const words = wordsOf(source)
  const joined = words.map((word, i) => (i === 0 ? lowerFirst(word) : upperFirst(word))).join('')
  const plain = isTableName(source) ? source : /^[a-z]/.test(joined) ? joined : `table${joined}`
  const free = RESERVED_TABLES.includes(plain) ? `imported${upperFirst(plain)}` : plain
  return takeFree(free, taken)
}

/** Returns a free name for a field, and takes it. */
export function fieldName(source: string, taken: Set<string>): string {
  if (FIELD_NAME.test(source)) return takeFree(source, taken)
  const plain = source.replace(/[^A-Za-z0-9_]+/g, '_').replace(/^_+|_+$/g, '')
  return takeFree(/^[A-Za-z]/.test(plain) ? plain : `field${upperFirst(plain)}`, taken)
}

/** Returns a free name for an index, and takes it. */
export function indexName(source: string, taken: Set<string>): string {
  const plain = source.replace(/[^A-Za-z0-9_]+/g, '_').replace(/^_+/, '')
  return takeFree(INDEX_NAME.test(plain) ? plain : `index${plain}`, taken)
}

function takeFree(wanted: string, taken: Set<string>): string {
  const base = wanted.slice(0, LENGTH_MAX)
  let name = base
  for (let i = 2; taken.has(name); i++) name = `${base.slice(0, LENGTH_MAX - 8)}${i}`
  taken.add(name)
  return name
}

function wordsOf(text: string): readonly string[] {
  return text.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1)
}

function upperFirst(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
