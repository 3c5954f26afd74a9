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
