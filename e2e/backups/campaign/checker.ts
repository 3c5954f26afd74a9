/** Compares a restored server with the journal of its clients. */
import { createHash } from 'node:crypto'
import { fields, id, type Json, string } from '../../application.ts'
import type { SeededRandom } from '../../serializability/random.ts'
import type { Call, Credential, Journal, Register, Setting } from './journal.ts'
import type { Load } from './load.ts'
import type { Origins } from './origins.ts'

export interface CheckOptions {
  readonly origins: Origins
  readonly journal: Journal
  readonly sequence: number
  readonly clientId: string
  readonly random: SeededRandom
  /** Files without bytes, as the restore reported. */
  readonly missingFiles: number
}

export interface Contents {
  readonly registers: ReadonlyMap<number, Register>
  readonly files: ReadonlyMap<number, { readonly fileId: string; readonly sha256: string | null }>
  readonly settings: ReadonlyMap<string, string>
  readonly credentials: readonly string[]
  readonly secret: string | null
}

export interface Verdict {
  readonly violations: string[]
  /** Changes of the configuration and sessions that the server has. */
  readonly control: number
  readonly sessions: number
  /** Files whose bytes were lost with the server. */
  readonly lostFiles: number
}

/** Files that are downloaded, and sessions and keys that are used, of those that must be there. */
const SAMPLE = 8

/** Reads everything that calls can change. Call it before the server gets other calls. */
export async function readContents({ origins, clientId }: CheckOptions): Promise<Contents> {
  const registers = new Map<number, Register>()
  for (const item of await pages(origins, 'registers.page')) {
    const { key, value, writes } = fields(item)
    const number = Number(key.value)
    if (registers.has(number)) throw new Error(`register ${number} is there twice`)
    registers.set(number, { value: Number(value.value), writes: Number(writes.value) })
  }
  const files = new Map<number, { fileId: string; sha256: string | null }>()
  for (const item of await pages(origins, 'registers.files')) {
    const { text, file, sha256 } = fields(item)
    files.set(Number(text.value), { fileId: file.value, sha256: sha256.value ?? null })
  }
  const configuration = await read(origins, '/configuration')
  const settings = new Map<string, string>(
    configuration.entries
      .filter(({ kind }: Json) => kind === 'variable')
      .map(({ name, value }: Json) => [name, value]),
  )
  const found = await read(origins, `/application-clients/${clientId}/credentials`)
  const credentials = found.credentials.map(({ credentialId }: Json) => credentialId)
  const secret = await origins.call('action', { function: 'registers.secret' })
  const isSet = secret?.status === 200
  return {
    registers,
    files,
    settings,
    credentials,
    secret: isSet ? secret.body.result.value : null,
  }
}

/**
 * Repeats the calls that had no answer: the answer to one that the server has is a replay. Returns
 * the calls that it had not.
 */
export async function resolveCalls(
  load: Load,
  calls: readonly Call[],
  { sequence, violations }: { readonly sequence: number; readonly violations: string[] },
): Promise<Call[]> {
  const executed: Call[] = []
  for (const call of calls) {
    const isReplayed = await load.send(call, { insists: true })
    if (call.answer === null) continue
    if (isReplayed !== call.answer.sequence <= sequence) {
      violations.push(`call ${call.number} has sequence ${call.answer.sequence}`)
    }
    if (!isReplayed) executed.push(call)
  }
  return executed
}

/** Every call that the server has must have an answer in the journal by now. */
export async function check(options: CheckOptions, contents: Contents): Promise<Verdict> {
  const { journal, sequence } = options
  const expected = journal.documentsAt(sequence)
  const violations = [...expected.contradictions]
  const compare = <T>(what: string, is: ReadonlyMap<number, T>, should: ReadonlyMap<number, T>) => {
    for (const key of new Set([...is.keys(), ...should.keys()])) {
      const [a, b] = [is.get(key), should.get(key)].map((each) => JSON.stringify(each))
      if (a !== b) violations.push(`${what} ${key} is ${a}, not ${b}, at ${sequence}`)
    }
  }
  compare('register', contents.registers, expected.registers)
  const digests = [...contents.files].map(([number, { sha256 }]) => [number, sha256] as const)
  compare<string | null>('file', new Map(digests), expected.files)
  const lostFiles = await checkFiles(options, contents, violations)
  const control = await checkControl(options, contents, violations)
  const sessions = await checkSessions(options, violations)
  return { violations, control, sessions, lostFiles }
}

/**
 * Downloads files. Bytes may be missing of a file that the server did not report as restorable, if
 * the restore said so.
 */
async function checkFiles(
  { origins, random, journal, sequence, missingFiles }: CheckOptions,
  { files }: Contents,
  violations: string[],
): Promise<number> {
  const missing = new Set<string>()
  const sequences = new Map(journal.calls.map(({ number, answer }) => [number, answer?.sequence]))
  const all = [...files].sort(([a], [b]) => b - a)
  const chosen = [
    ...all.slice(0, SAMPLE),
    ...Array.from({ length: SAMPLE }, () => random.pick(all)),
  ]
  for (const [number, { fileId, sha256 }] of all.length === 0 ? [] : chosen) {
    const granted = await origins.call('action', {
      function: 'uploads.grantDownload',
      arguments: { file: id(fileId), fileName: string('file') },
    })
    if (granted?.status !== 200) {
      violations.push(`file ${number}: ${JSON.stringify(granted?.body)}`)
      continue
    }
    const { path, token } = fields(granted.body.result)
    const headers = { authorization: `Bearer ${token.value}` }
    const reply = await origins.transfer(path.value, { headers })
    const bytes = new Uint8Array((await reply?.arrayBuffer()) ?? [])
    const digest = createHash('sha256').update(bytes).digest('hex')
    if (digest === sha256) continue
    const isReported = journal.mustHaveFile(sequences.get(number) ?? sequence)
    if (reply?.status === 200 || isReported) {
      violations.push(`file ${number}: ${reply?.status}, other bytes`)
    }
    missing.add(fileId)
  }
  if (missing.size > missingFiles) {
    violations.push(`${missing.size} files lack their bytes, and ${missingFiles} were reported`)
  }
  return missing.size
}

/**
 * The control database is the one after some change, and has each change that was answered before a
 * call was sent whose commit the server has. Returns the number of changes.
 */
async function checkControl(
  { origins, journal, sequence }: CheckOptions,
  contents: Contents,
  violations: string[],
): Promise<number> {
  const { control } = journal
  const least = journal.leastChanges(control, sequence)
  const actual = JSON.stringify([
    [...contents.settings].sort(),
    contents.credentials.toSorted(),
    contents.secret,
  ])
  for (let count = control.length; count >= 0; count--) {
    if (JSON.stringify(stateAfter(control.slice(0, count))) !== actual) continue
    if (count < least) violations.push(`control has ${count} changes, not ${least}, at ${sequence}`)
    const keys = control
      .slice(0, count)
      .flatMap((each) => (isCredential(each) ? (each.key ?? []) : []))
    for (const key of keys.slice(-SAMPLE)) {
      const reply = await origins.call('query', PAGE_CALL('registers.page', null), key)
      if (reply?.status !== 200) violations.push(`a key: ${JSON.stringify(reply?.body)}`)
    }
    return count
  }
  violations.push(`control is no state: ${actual}, at least ${least} changes`)
  return 0
}

const isCredential = (change: Setting | Credential): change is Credential =>
  change.kind === 'credential'

function stateAfter(changes: readonly (Setting | Credential)[]): Json {
  const settings = new Map<string, string>()
  const credentials: string[] = []
  let secret: string | null = null
  for (const change of changes) {
    if (isCredential(change)) credentials.push(change.credentialId)
    else if (change.kind === 'secret') secret = change.value
    else settings.set(change.name, change.value)
  }
  return [[...settings].sort(), credentials.sort(), secret]
}

/** Sessions are in the order of their logins, without one that is missing before another one. */
async function checkSessions(
  { origins, journal, sequence }: CheckOptions,
  violations: string[],
): Promise<number> {
  const { sessions, reportedSessions } = journal
  const isNewest = sequence >= journal.reported
  const least = isNewest ? reportedSessions : 0
  const works = async (index: number) => {
    const reply = await origins.manage('GET', '/v1/auth/me', { token: sessions[index]!.token })
    return reply?.status === 200
  }
  for (let i = Math.max(0, least - SAMPLE); i < least; i++) {
    if (!(await works(i))) violations.push(`session ${i} is missing of ${least}`)
  }
  let count = least
  while (count < sessions.length && (await works(count))) count += 1
  if (count + 1 < sessions.length && (await works(count + 1))) {
    violations.push(`session ${count} is missing before another one`)
  }
  return count
}

const PAGE_CALL = (name: string, cursor: string | null) => ({
  function: name,
  arguments: { cursor: cursor === null ? { type: 'null' } : string(cursor) },
})

async function pages(origins: Origins, name: string): Promise<Json[]> {
  const items: Json[] = []
  for (let cursor: string | null = null; ; ) {
    const reply = await origins.call('query', PAGE_CALL(name, cursor))
    if (reply?.status !== 200) throw new Error(JSON.stringify(reply))
    const page: Json = fields(reply.body.result)
    items.push(...page.items.value)
    cursor = page.cursor.value ?? null
    if (cursor === null) return items
  }
}

async function read(origins: Origins, path: string): Promise<Json> {
  const reply = await origins.manage('GET', origins.base + path)
  if (reply?.status !== 200) throw new Error(JSON.stringify(reply))
  return reply.body
}
