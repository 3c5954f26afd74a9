/** An import in full size: 1,000,000 documents, interrupted ten times. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application } from '../application.ts'
import { exportedNames, importWithKills, namesOf } from './killed-imports.ts'

const COUNT = Number(process.env.SVC_IMPORT_DOCUMENTS ?? 1_000_000)
const MINUTES = 60_000

let app: Application
beforeAll(async () => {
  app = await application()
})
afterAll(() => app?.installation.dispose())

test(
  `${COUNT} documents are complete and not doubled after ten kills`,
  async () => {
    const { result, killedAfter, millis } = await importWithKills(app, { count: COUNT, kills: 10 })
    console.info(`${Math.round((COUNT / millis) * 1_000)} documents/s, all runs together`)
    expect(killedAfter).toHaveLength(10)
    expect(killedAfter.at(-1)).toBeLessThan(COUNT)
    expect(result.inserted + result.unchanged).toBe(COUNT)
    expect(await exportedNames(app, 'all.jsonl')).toEqual(namesOf(COUNT))
  },
  30 * MINUTES,
)
