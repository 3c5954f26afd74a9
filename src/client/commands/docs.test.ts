import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestClient } from '../../../testing/client/test-client.ts'
import { DOCUMENTS } from '../../docs/embedded.generated.ts'

const topics = Object.keys(DOCUMENTS)
const fileOf = (topic: string): string =>
  readFileSync(join(import.meta.dirname, `../../docs/${topic}.md`), 'utf8')

let client: TestClient

/** Has no session and no network. */
beforeEach(() => {
  client = new TestClient()
  client.fetch = () => expect.unreachable('the network was asked')
})

afterEach(() => client[Symbol.dispose]())

test('svc docs lists the topics with their titles if no topic is given', async () => {
  const { exit, out, err } = await client.run('docs')
  expect([exit, err]).toEqual([0, ''])
  const lines = out.trimEnd().split('\n').slice(1)
  expect(lines.map((line) => line.split(' ')[0])).toEqual(topics)
  expect(lines.find((line) => line.startsWith('limits '))).toContain(
    'Limits of calls, Actions, Releases',
  )
  const { out: json } = await client.run('docs', '--json')
  const document = JSON.parse(json)
  expect(document.version).toBe(1)
  expect(document.topics.map(({ name }: { name: string }) => name)).toEqual(topics)
  for (const { title } of document.topics) expect(title).toMatch(/^\S.{9,89}$/)
})

test.each(topics)('the topic %s is printed as the file has it', async (topic) => {
  expect(await client.run('docs', topic)).toEqual({ exit: 0, out: fileOf(topic), err: '' })
  const { out } = await client.run('docs', topic, '--json')
  const { text, ...rest } = JSON.parse(out)
  expect(text).toBe(fileOf(topic))
  const title = /^# (.*)\n/.exec(text)?.[1]
  expect(rest).toEqual({ version: 1, topic, title })
})

test('an unknown topic is a usage error that names the nearest one', async () => {
  const { exit, out, err } = await client.run('docs', 'limts')
  expect([exit, out]).toEqual([2, ''])
  expect(err).toContain('Unknown topic. Did you mean limits? `svc docs` lists the topics.')
  for (const topic of ['', '__proto__', 'toString']) {
    expect((await client.run('docs', topic)).exit).toBe(2)
  }
})

/** Runs the command until it has printed its address, calls `use` with it, and interrupts. */
async function serving(args: readonly string[], use: (url: string) => Promise<void>) {
  let done: Promise<unknown> | null = null
  let printed = ''
  client.onOutput = (text) => {
    printed += text
    const url = /http:\/\/127\.0\.0\.1:\d+\/\S*/.exec(printed)?.[0]
    if (url === undefined || done !== null) return
    done = use(url).finally(() => client.interrupt())
  }
  const ran = await client.run('docs', '--serve', ...args)
  await done
  return ran
}

test('svc docs --serve serves the pages at this machine until it is interrupted', async () => {
  const shown: string[] = []
  const { exit, err } = await serving([], async (url) => {
    const page = await fetch(url)
    shown.push(await page.text(), await (await fetch(`${url}cli.html`)).text(), url)
  })
  expect(exit).toBe(130)
  expect(err).toContain('Interrupt to end.')
  expect(shown[0]).toContain('<h2>Reference</h2>')
  expect(shown[1]).toContain('<h1 id="commands-and-options-of-svc-and-svc-server">')
  await expect(fetch(shown[2]!)).rejects.toThrow()
})

test('svc docs --serve --open TOPIC opens the page of the topic', async () => {
  const opened: string[] = []
  client.openBrowser = async (url) => {
    opened.push(url)
    return true
  }
  let printed = ''
  const { exit } = await serving(['--open', 'hooks'], async (url) => {
    printed = url
    await expect.poll(() => opened, { timeout: 120_000 }).toEqual([url])
  })
  expect(exit).toBe(130)
  expect(printed).toMatch(/\/hooks\.html$/)
})

test.each([
  [['--port', '80'], '--port and --open need --serve.'],
  [['--open'], '--port and --open need --serve.'],
  [['--serve', '--port', '0'], '--port needs a number from 1 to 65535.'],
  [['--serve', '--port', '65536'], '--port needs a number from 1 to 65535.'],
  [['--serve', '--port', '1e3'], '--port needs a number from 1 to 65535.'],
  [['--serve', 'limts'], 'Unknown topic. Did you mean limits?'],
])('svc docs %j is a usage error', async (args, message) => {
  const { exit, out, err } = await client.run('docs', ...args)
  expect([exit, out]).toEqual([2, ''])
  expect(err).toContain(message)
})
