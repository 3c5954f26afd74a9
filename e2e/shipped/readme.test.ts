/**
 * Runs the first steps of README.md as they are written. Only the database and the two addresses
 * are replaced, as a reader would do.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../testing/databases/postgres.ts'
import { codeBlocks } from '../../testing/markdown/markdown.ts'
import { freePort } from '../../testing/servers/ports.ts'
import { commandsOf, MARK, markedScript, shownText, tapeOf } from '../../testing/tapes/tape.ts'
import { CLIENT, run, SERVER } from '../harness.ts'

const ROOT = join(import.meta.dirname, '../..')
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
/** The recording that the first page of the documentation shows. */
const TAPE = join(ROOT, 'src/site/page/first-steps.cast')

/** The calls with curl of a document, for the key and the server of the walk. */
function curlCalls(document: string): string[] {
  const blocks = codeBlocks(readFileSync(join(ROOT, document), 'utf8'))
  return blocks.map(({ text }) => text).filter((text) => text.startsWith('curl '))
}

test('the first steps of README.md lead to successful calls, as the recording shows', async () => {
  const walk = /<!-- walk -->\n```sh\n([\s\S]*?)```/.exec(README)?.[1] ?? ''
  expect(walk).toContain('svc call channels.list')
  const database = await freshDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-readme-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const tools = join(folder, 'bin')
  const empty = join(folder, 'empty')
  for (const path of [tools, empty]) mkdirSync(path)
  symlinkSync(SERVER, join(tools, 'svc-server'))
  symlinkSync(CLIENT, join(tools, 'svc'))
  // curl shows its progress where its output goes to a file.
  writeFileSync(join(folder, '.curlrc'), 'silent\n')
  const [management, application] = await Promise.all([freePort(), freePort()])
  const commands = commandsOf(walk)
  const calls = [...curlCalls('README.md'), ...curlCalls('src/docs/calls.md')]
  expect(calls).toHaveLength(3)
  const script = [markedScript([...commands, ...calls])]
    .join('')
    .replace("'postgres://user:password@127.0.0.1:5432/svc'", `'${database.url}'`)
    .replaceAll('127.0.0.1:3220', `127.0.0.1:${management}`)
    .replaceAll('127.0.0.1:3210', `127.0.0.1:${application}`)
  const result = await run(['/bin/sh', '-e', '-c', `trap 'kill $!; wait' EXIT\n${script}`], {
    directory: empty,
    environment: {
      PATH: `${tools}:${process.env.PATH}`,
      CURL_HOME: folder,
      SERVICE_CONFIG_HOME: join(folder, 'config'),
      SERVICE_MANAGEMENT_LISTEN: `127.0.0.1:${management}`,
      SVC_ALLOW_LOOPBACK_HTTP: 'true',
    },
  })
  const log = readFileSync(join(empty, 'server.log'), 'utf8')
  await database.drop()
  expect(result.status, result.stdout + result.stderr + log).toBe(0)
  const [, ...outputs] = result.stdout.split(MARK)
  const ofWalk = outputs.slice(0, commands.length)
  expect(ofWalk.at(-1)).toContain('"name": "general"')
  // A Channel has one name, and `general` exists.
  const [random, general, list] = outputs.slice(commands.length)
  expect(JSON.parse(random!)).toMatchObject({ status: 'ok' })
  expect(JSON.parse(general!)).toMatchObject({ error: { code: 'APP_CHANNEL_EXISTS' } })
  expect(list).toContain('"name":"random"')
  const shown = [MARK, ofWalk.join(MARK)]
    .join('')
    .replaceAll(`127.0.0.1:${management}`, '127.0.0.1:3220')
    .replaceAll(`127.0.0.1:${application}`, '127.0.0.1:3210')
    .replaceAll(empty, '/home/me/chat')
    .replaceAll(folder, '/home/me')
    .replace(/test_[0-9a-f]+ at 127\.0\.0\.1:\d+/, 'svc at 127.0.0.1:5432')
  const tape = tapeOf(commands, shown)
  if (process.env.SVC_RECORD === '1') writeFileSync(TAPE, tape)
  const recorded = existsSync(TAPE) ? readFileSync(TAPE, 'utf8') : ''
  // A new line of a command needs a new recording: run this test with SVC_RECORD=1, then generate.
  expect(shownText(tape)).toBe(shownText(recorded))
})
