/**
 * Export and import of documents on the Data page, against the compiled server.
 *
 * @module-tag slow
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({
  notes: table({ title: v.string(), text: v.string() }).index('byTitle', ['title']),
})
`
const MARKUP = '<img src=x onerror="window.attacked=1">'
const BIDIRECTIONAL = 'safe\u202egnp.exe'
/** More than two batches. */
const DOCUMENTS = 1_200

let app: Application
let page: ConsolePage

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application((workspace) => {
    for (const file of ['functions/channels.ts', 'functions/messages.ts', 'crons.ts']) {
      rmSync(join(workspace, file), { force: true })
    }
    writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
    writeFileSync(
      join(workspace, 'functions/notes.ts'),
      "import { query } from 'svc'\n" +
        "export const none = query({ clients: ['public'], handler: () => null })\n",
    )
  })
  page = await openConsole(app)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
})

const line = (title: string, text = 'text') => `${JSON.stringify({ title, text })}\n`

/** Chooses a file as a person does. */
async function choose(name: string, lines: readonly string[]): Promise<void> {
  const parts = JSON.stringify(lines)
  await page.tab.evaluate(`void (() => {
    const files = new DataTransfer()
    files.items.add(new File(${parts}, ${JSON.stringify(name)}))
    const input = document.querySelector('input[type=file]')
    input.files = files.files
    input.dispatchEvent(new Event('change', { bubbles: true }))
  })()`)
}

async function stored(): Promise<readonly { readonly title: string }[]> {
  const at = argv`--root ${app.installation.productRoot} --target channel:production`
  const file = join(app.installation.directory, `export-${Math.random()}.jsonl`)
  await app.svc(argv`data export notes ${file} ${at}`)
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((each) => each !== '')
  return lines.map((each) => JSON.parse(each))
}

const where = chromiumInstalled
  ? 'the Data page in headless Chromium'
  : 'the Data page in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('a wrong line is rejected with its number, and nothing is inserted', async () => {
    await page.show('data?target=channel:production&table=notes')
    await page.sees('Export and import')
    // The bytes of an export, and a violation of the policy of the page.
    await page.tab.evaluate(`void (() => {
      const make = URL.createObjectURL
      URL.createObjectURL = (blob) => {
        window.exported = blob
        return make.call(URL, blob)
      }
      window.violations = []
      addEventListener('securitypolicyviolation', ({ violatedDirective }) =>
        window.violations.push(violatedDirective))
    })()`)
    const lines = [line('a'), '\n', line('b'), '{"title":"c","text":1}\n']
    await choose(`${MARKUP}.jsonl`, lines)
    await page.sees('The file cannot be imported: line 4')
    await page.isAccessible('import-rejected')
    await choose('broken.jsonl', [line('a'), '{"title":\n'])
    await page.sees('The file cannot be imported: line 2')
    await choose('empty.jsonl', ['\n'])
    await page.sees('It has no document.')
    expect(await stored()).toEqual([])
  })

  test('a file is imported after a question, in batches, as the command does', async () => {
    const lines = Array.from({ length: DOCUMENTS }, (_, i) => line(`note ${i}`))
    await choose(`${MARKUP}.jsonl`, [...lines, line(MARKUP, BIDIRECTIONAL)])
    await page.sees(`Import ${DOCUMENTS + 1} documents into notes?`)
    await page.sees('svc data import notes FILE --target channel:production')
    await page.isAccessible('import-question')
    await page.click('Cancel')
    expect(await stored()).toEqual([])
    await choose(`${MARKUP}.jsonl`, [...lines, line(MARKUP, BIDIRECTIONAL)])
    await page.sees('Import the documents')
    await page.click('Import the documents')
    await page.sees(`Inserted ${DOCUMENTS + 1} documents; 0 existed with the same fields.`)
    await page.sees(MARKUP)
    await page.sees('safe\\u{202e}gnp.exe')
    const titles = (await stored()).map(({ title }) => title)
    expect(titles).toEqual([...Array.from({ length: DOCUMENTS }, (_, i) => `note ${i}`), MARKUP])
    await page.isAccessible('imported')
  })

  test('the range that is shown is exported in its order, and can be imported again', async () => {
    await page.show('data?target=channel:production&table=notes&order=asc')
    await page.click('Export as notes.jsonl')
    await page.sees(`Exported ${DOCUMENTS + 1} documents.`)
    const text = await page.tab.evaluate<string>('window.exported.text()')
    const exported = text.trimEnd().split('\n')
    expect(exported.map((each) => JSON.parse(each))).toEqual(await stored())
    await choose('again.jsonl', [text])
    await page.click('Import the documents')
    await page.sees(`Inserted 0 documents; ${DOCUMENTS + 1} existed with the same fields.`)

    const bound = encodeURIComponent('title eq note 7')
    await page.show(`data?target=channel:production&table=notes&index=byTitle&bound=${bound}`)
    await page.click('Export as notes.jsonl')
    await page.sees('Exported 1 documents.')
    const one = await page.tab.evaluate<string>('window.exported.text()')
    expect(JSON.parse(one)).toMatchObject({ title: 'note 7' })
    expect(await page.tab.evaluate('window.violations')).toEqual([])
  })

  test('a rejected batch names its line, and the batches before it stay', async () => {
    const before = await stored()
    const [{ _id: id }] = before as unknown as [{ readonly _id: string }]
    const fresh = Array.from({ length: 500 }, (_, i) => line(`fresh ${i}`))
    const conflict = `${JSON.stringify({ _id: id, title: 'another', text: 'text' })}\n`
    await choose('conflict.jsonl', [...fresh, line('not inserted'), conflict])
    await page.click('Import the documents')
    await page.sees('line 502')
    const titles = (await stored()).map(({ title }) => title)
    expect(titles).toHaveLength(before.length + 500)
    expect(titles).not.toContain('not inserted')
    expect(await page.tab.evaluate('String(window.attacked)')).toBe('undefined')
  })
})
