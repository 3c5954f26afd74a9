/**
 * Documents go into a served Environment and out of it as JSON lines.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'
import { exportedNames, importWithKills, namesOf, where } from './killed-imports.ts'

const COUNT = 15_000

let app: Application
beforeAll(async () => {
  app = await application()
})
afterAll(() => app?.installation.dispose())

test('an import whose client is killed ends with every document once', async () => {
  const { result, killedAfter } = await importWithKills(app, { count: COUNT, kills: 3 })
  expect(killedAfter).toHaveLength(3)
  expect(killedAfter.at(-1)).toBeLessThan(COUNT)
  expect(result.inserted + result.unchanged).toBe(COUNT)
  expect(await exportedNames(app, 'first.jsonl')).toEqual(namesOf(COUNT))
})

test('a tagged export can be imported again and changes nothing', async () => {
  const file = join(app.installation.directory, 'tagged.jsonl')
  await app.svc(argv`data export channels ${file} ${where(app)} --tagged`)
  const [line] = readFileSync(file, 'utf8').split('\n')
  expect(JSON.parse(line!)).toMatchObject({ type: 'object' })
  const imported = await app.svc(argv`data import channels ${file} ${where(app)} --tagged`)
  expect(imported).toMatchObject({ inserted: 0, unchanged: COUNT })
  const tables = await app.svc(argv`data tables ${where(app)}`)
  expect(tables.tables.map(({ name }: { name: string }) => name)).toEqual(['channels', 'messages'])
})
