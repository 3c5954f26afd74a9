/**
 * The output of svc for a server whose texts contain terminal controls. It runs on a
 * pseudo-terminal, where colours are on, and into a pipe. Its output is searched for every
 * character that moves a cursor, changes the direction of text or is invisible.
 *
 * @module-tag slow
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { RecordingServer } from '../../testing/servers/recording-server.ts'
import { argv } from '../argv.ts'
import { CLIENTS, type Result, run } from '../harness.ts'
import { type StoredSession, storedSession } from './stored-sessions.ts'

/** The name of each character, the character, and its forms in JSON and in text for users. */
const HOSTILE = [
  ['an escape sequence', '\u001b[2J', '\\u001b[2J', '\\u{1b}[2J'],
  ['a C1 control', '\u009b2J', '\\u009b2J', '\\u{9b}2J'],
  ['a deletion', '\u007f', '\\u007f', '\\u{7f}'],
  ['a bidirectional override', '\u202egpj', '\\u202egpj', '\\u{202e}gpj'],
  ['a bidirectional isolate', '\u2066', '\\u2066', '\\u{2066}'],
  ['an Arabic letter mark', '\u061c', '\\u061c', '\\u{61c}'],
  ['a space without width', '\u200b', '\\u200b', '\\u{200b}'],
  ['a joiner', '\u200d', '\\u200d', '\\u{200d}'],
  ['a byte order mark', '\ufeff', '\\ufeff', '\\u{feff}'],
  ['a line separator', '\u2028', '\\u2028', '\\u{2028}'],
  ['a tag', '\u{e0041}', '\\udb40\\udc41', '\\u{e0041}'],
  ['a variation selector', '\u{e0100}', '\\udb40\\udd00', '\\u{e0100}'],
] as const
/** The characters under Node, which takes longest to start: one of each length in UTF-16. */
const underNode =
  process.env.SVC_TEST_LONG === '1'
    ? HOSTILE
    : HOSTILE.filter(([name]) => ['an escape sequence', 'a tag'].includes(name))
const ALL = HOSTILE.map(([, character]) => character).join('')
/** Characters that must be escaped. A pseudo-terminal ends lines with CR LF. */
const RAW = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\r\n]]/v
/** The styles that svc itself writes. */
const STYLES = /\u001b\[(?:1|2|22|31|39)m/g

const error = (message: string) => ({
  version: 1,
  requestId: 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  status: 'error',
  error: {
    code: 'APP_UNKNOWN_CODE',
    message,
    retryable: false,
    violations: [{ path: `a${message}`, rule: `b${message}` }],
  },
})

let server: RecordingServer
let session: StoredSession
/** The message of the server's next response. */
let message: string
beforeEach(async () => {
  server = await RecordingServer.start(() => ({
    status: 400,
    body: JSON.stringify(error(message)),
  }))
  session = storedSession({ authentication: server.origin() }, { operatorName: `Ada${ALL}` })
})
afterEach(() => {
  server[Symbol.dispose]()
  session[Symbol.dispose]()
})

describe.each(CLIENTS)('$build', ({ build, command, needs }) => {
  const svc = (args: readonly string[]): Promise<Result> =>
    run(argv`${command} ${args}`, { environment: { ...needs, ...session.environment } })

  /** Returns the output of svc as a terminal receives it. */
  async function onTerminal(args: readonly string[]): Promise<string> {
    const line = argv`${command} ${args}`.map((word) => `'${word}'`).join(' ')
    const environment = {
      ...session.environment,
      PATH: needs.PATH ?? '/usr/bin:/bin',
      TERM: 'xterm-256color',
    }
    const { stdout } = await run(['/usr/bin/script', '-qec', line, '/dev/null'], { environment })
    return stdout
  }

  test.each(build === 'the executable' ? HOSTILE : underNode)(
    '%s in a text of the server is escaped',
    async (_, character, inJson, forUsers) => {
      message = `Look: ${character}!`
      const json = await svc(argv`whoami --json`)
      expect(json.stdout).toContain(`Look: ${inJson}!`)
      expect(json.stdout).not.toMatch(RAW)
      expect(JSON.parse(json.stdout).error).toMatchObject({
        message,
        violations: [{ path: `a${message}`, rule: `b${message}` }],
      })
      const text = await svc(argv`whoami`)
      expect(text.stderr).toContain(`Look: ${forUsers}!`)
      expect(text.stderr).toContain(`a${`Look: ${forUsers}!`}: b`)
      expect(text.stderr).not.toMatch(RAW)
    },
  )

  test('a terminal receives no controls except the styles of svc', async () => {
    message = `Look: ${ALL}`
    const failed = await onTerminal(argv`whoami`)
    expect(failed).toMatch(/\u001b\[31msvc/)
    expect(failed.replace(STYLES, '')).not.toMatch(RAW)
    const status = await onTerminal(argv`auth status`)
    expect(status).toContain('\u001b[1mAda\\u{1b}[2J')
    expect(status.replace(STYLES, '')).not.toMatch(RAW)
  })

  test('a text of the server is shown on one line', async () => {
    message = 'first\nsvc: Logged in.\tsecond'
    const { stderr } = await svc(argv`whoami`)
    expect(stderr).toContain('first\\u{a}svc: Logged in.\\u{9}second')
  })

  test('a text that is read from a file is escaped', async () => {
    const text = await svc(argv`auth status`)
    expect(text.stdout).toContain('Ada\\u{1b}[2J\\u{9b}2J')
    expect(text.stdout).not.toMatch(RAW)
    const json = await svc(argv`auth status --json`)
    expect(json.stdout).not.toMatch(RAW)
    expect(JSON.parse(json.stdout).operator.operatorName).toBe(`Ada${ALL}`)
  })
})
