/** The list of decisions in src/decisions/README.md, from the records in its folders. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../src/errors/assert.ts'
import { between, table } from './markdown.ts'

export const DECISIONS = 'src/decisions'

/** The folders of the records, in the order of the list, with what each is about. */
const CHAPTERS: Readonly<Record<string, string>> = {
  values: 'Values, their encodings and their validators',
  documents: 'The document stores',
  engine: 'Transactions, commits, the query cache, calls of Functions',
  runner: 'The processes that run Functions, and their realm',
  realtime: 'Subscriptions',
  scheduling: 'Scheduled work and Crons',
  releases: 'Releases, configuration, serving, changes by operators',
  files: 'Stored files, buckets and the S3-compatible API',
  backups: 'Backups: their format, how they are made and restored',
  http: 'Requests and responses',
  identity: 'Tokens and sessions',
  telemetry: 'The log, metrics and traces',
  server: 'The process of the server: its start, its variables, its faults',
  client: 'The commands, and the client of applications',
  development: 'Builds, `svc dev` and development keys',
  testing: 'The test kit, and the tests of this program',
}

const RECORD = /^(\d{4})-[a-z0-9-]+\.md$/

interface DecisionRecord {
  readonly chapter: string
  readonly number: string
  readonly file: string
  readonly title: string
}

/** Replaces the list. `text` is the README; the records are below `root`. */
export function withDecisions(text: string, root: string): string {
  const records = readRecords(join(root, DECISIONS))
  const chapters = Object.entries(CHAPTERS).map(([chapter, about]) => {
    const rows = records
      .filter((record) => record.chapter === chapter)
      .map(({ number, file, title }) => [number, `[${title}](${chapter}/${file})`])
    return `## ${chapter}\n\n${about}.\n\n${table(['', 'decision'], rows)}`
  })
  return between(text, 'records', `${chapters.join('\n')}`)
}

/** Reads every record, sorted by number. Throws if a chapter, a number or a title is wrong. */
export function readRecords(folder: string): DecisionRecord[] {
  const entries = readdirSync(folder, { withFileTypes: true }).filter(
    ({ name }) => name !== 'README.md',
  )
  const records = entries.flatMap((entry) => {
    const { name: chapter } = entry
    assert(
      entry.isDirectory() && chapter in CHAPTERS,
      `${DECISIONS}/${chapter} is not a chapter of build/docs/decisions.ts`,
    )
    return readdirSync(join(folder, chapter)).map((file) => recordOf(folder, chapter, file))
  })
  records.sort((a, b) => (a.number < b.number ? -1 : 1))
  const twice = records.find(({ number }, i) => number === records[i + 1]?.number)
  assert(twice === undefined, `two records have the number ${twice?.number}`)
  return records
}

function recordOf(folder: string, chapter: string, file: string): DecisionRecord {
  const number = RECORD.exec(file)?.[1]
  assert(number !== undefined, `${chapter}/${file} is not named 0000-some-title.md`)
  const text = readFileSync(join(folder, chapter, file), 'utf8')
  const [, named, title] = /^# (\d{4})\. (.*)\n/.exec(text) ?? []
  assert(named === number && title !== undefined, `${chapter}/${file} begins with another number`)
  return { chapter, number, file, title }
}
