/** Paths of the Realtime Database whose children are documents, as `--table` names them. */
import { Fault } from '../../../errors/fault.ts'
import { explanation } from '../../explanations.ts'

/** Stands for each key at its level. */
export const ANY = '*'
/** Levels of a Realtime Database. */
const LEVELS_MAX = 32
const PATHS_MAX = 1_000
const FORBIDDEN = /[.$#[\]\u0000-\u001f\u007f]/

export interface TablePath {
  /** The keys with slashes, as in `messages/*`. */
  readonly text: string
  readonly keys: readonly string[]
}

export function tablePathOf(keys: readonly string[]): TablePath {
  return { text: keys.join('/'), keys }
}

/** Parses the values of `--table`. Throws CLIENT_USAGE. */
export function parseTablePaths(texts: readonly string[]): readonly TablePath[] {
  if (texts.length > PATHS_MAX) throw invalid(`There are more than ${PATHS_MAX} paths.`)
  const paths = texts.map((text) => {
    const keys = text.replace(/^\//, '').split('/')
    const isPlain = keys.every((key) => key !== '' && !FORBIDDEN.test(key))
    if (!isPlain || keys.length > LEVELS_MAX || keys[0] === ANY) {
      throw invalid(`${JSON.stringify(text)} is no path of a table.`)
    }
    return tablePathOf(keys)
  })
  paths.forEach(({ text, keys }, i) => {
    const other = paths.slice(0, i).find((each) => areWithin(keys, each.keys))
    if (other !== undefined) throw invalid(`${other.text} and ${text} have the same documents.`)
  })
  return paths
}

function invalid(detail: string) {
  const next = 'Write keys with slashes, and * for each key, such as `--table messages/*`.'
  return new Fault('CLIENT_USAGE', { detail, cause: explanation({ next }) })
}

/** Returns whether the path has the keys at each level that both have. */
export function agrees(path: readonly string[], { keys }: TablePath): boolean {
  const length = Math.min(path.length, keys.length)
  for (let i = 0; i < length; i++) {
    if (keys[i] !== ANY && keys[i] !== path[i]) return false
  }
  return true
}

/** Returns whether a path may be one of both tables, or of one that is inside the other. */
function areWithin(one: readonly string[], other: readonly string[]): boolean {
  const length = Math.min(one.length, other.length)
  for (let i = 0; i < length; i++) {
    if (one[i] !== ANY && other[i] !== ANY && one[i] !== other[i]) return false
  }
  return true
}
