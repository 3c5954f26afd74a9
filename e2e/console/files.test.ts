/**
 * The page Files of the console in a browser, against the compiled server.
 *
 * @module-tag slow
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'
import { type ConsolePage, openConsole } from './console-page.ts'

const HTML = '<!doctype html><script>window.opener.attacked=1;document.title="attacked"</script>'
const NAME = '<img src=x onerror=window.attacked=1>'
const KEY = `a/${NAME}\u202egnp.html`
const SIZE = 40 * 1024 * 1024

let app: Application
let page: ConsolePage
let saved: string
let bucketId: string

/** Chooses a file of the page, as a person does with the dialog of the browser. */
async function choose(content: string, name: string, type: string): Promise<void> {
  await page.tab.evaluate(`(() => {
    const files = new DataTransfer()
    files.items.add(new File([${content}], ${JSON.stringify(name)}, { type: '${type}' }))
    document.querySelector('input[type=file]').files = files.files
  })()`)
}

const at = () => argv`--root ${app.installation.productRoot} --bucket uploads`

beforeAll(async () => {
  if (!chromiumInstalled) return
  app = await application()
  page = await openConsole(app)
  saved = mkdtempSync(join(tmpdir(), 'svc-saved-'))
  await page.browser.saveDownloads(saved)
})

afterAll(async () => {
  await page?.close()
  await app?.installation.dispose()
  if (saved !== undefined) rmSync(saved, { recursive: true })
})

const where = chromiumInstalled
  ? 'the page Files in headless Chromium'
  : 'the page Files in Chromium, which is not installed here'

describe.skipIf(!chromiumInstalled)(where, () => {
  test('an operator creates a bucket, and changes its bounds', async () => {
    await page.show('files')
    await page.sees('default')
    await page.fill('input[name=name]', 'uploads')
    await page.fill('input[name=quota]', 'much')
    await page.click('Create the bucket')
    await page.sees('The quota is not a size.')
    await page.fill('input[name=quota]', '1GiB')
    await page.click('Create the bucket')
    await page.sees('Created the bucket uploads')
    await page.isAccessible('buckets')
    const { items } = await app.svc(argv`buckets list --root ${app.installation.productRoot}`)
    const uploads = items.find(({ configuration }: { configuration: { name: string } }) => {
      return configuration.name === 'uploads'
    })
    bucketId = uploads.bucketId
    expect(uploads.configuration.quotaBytes).toBe(String(1024 ** 3))
    await page.click('uploads')
    await page.click('Change the bounds')
    await page.fill('input[name=objectMax]', '50MiB')
    await page.click('Replace the bounds')
    await page.sees('largest object: 50 MiB')
  })

  test('a file is uploaded, downloaded whole, and replaced after a question', async () => {
    await page.sees('The bucket is empty.')
    await choose(`new Uint8Array(${SIZE}).fill(7)`, 'large.bin', 'application/x-test')
    await page.click('Upload')
    await page.sees('Stored large.bin (40 MiB)')
    await page.click('large.bin')
    await page.sees('application/x-test')
    const sha256 = createHash('sha256').update(Buffer.alloc(SIZE, 7)).digest('hex')
    await page.sees(sha256)
    await page.click('Download')
    const digest = (): string => {
      if (!readdirSync(saved).includes('large.bin')) return 'not saved'
      return createHash('sha256')
        .update(readFileSync(join(saved, 'large.bin')))
        .digest('hex')
    }
    await expect.poll(digest, { timeout: 120_000 }).toBe(sha256)
    await page.isAccessible('object')

    await page.show(`files?bucket=${bucketId}`)
    await page.sees('Upload')
    await choose(`'b'`, 'large.bin', 'text/plain')
    await page.click('Upload')
    await page.sees('Replace the object large.bin?')
    await page.sees('svc files put large.bin --bucket uploads --key large.bin --type text/plain')
    await page.isAccessible('replace')
    await page.click('Replace the object')
    await page.sees('Stored large.bin (1 byte)')
  })

  test('a stored HTML file with a name of markup is saved, and never run', async () => {
    const file = join(app.installation.directory, 'x.html')
    writeFileSync(file, HTML)
    await app.svc(argv`files put ${file} ${at()} --key ${KEY} --type text/html`)
    await page.show(`files?bucket=${bucketId}&prefix=a/`)
    await page.sees(`a/${NAME}\\u{202e}gnp.html`)
    await page.isAccessible('objects')
    await page.click(`a/${NAME}`)
    await page.sees('text/html')
    await page.click('Download')
    const isSaved = (): boolean => readdirSync(saved).includes('download')
    await expect.poll(isSaved, { timeout: 120_000 }).toBe(true)
    expect(readFileSync(join(saved, 'download'), 'utf8')).toBe(HTML)
    const state = await page.tab.evaluate(
      `[String(window.attacked), document.title, document.querySelectorAll('main img').length]`,
    )
    expect(state).toEqual(['undefined', 'Files – svc console', 0])
  })

  test('an object is deleted after a question', async () => {
    await page.click('Delete …')
    await page.sees('svc files delete')
    await page.click('Delete the object')
    await page.sees('Beginning of the key')
    const { items } = await app.svc(argv`files list ${at()}`)
    expect(items.map(({ key }: { key: string }) => key)).toEqual(['large.bin'])
  })

  test('a storage key is shown once, rotated and revoked', async () => {
    await page.fill('form input[name=name]', NAME)
    await page.click('Issue the key')
    await page.sees('Copy the secret. It is shown once.')
    const secret = /rk_stk_v1_\S+/.exec(await page.text())?.[0]
    expect(secret).toBeDefined()
    await page.sees(NAME)
    await page.isAccessible('storage-key')
    const kept = `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href])`
    expect(await page.tab.evaluate(kept)).not.toContain('rk_stk')
    await page.click('Forget the secret')
    await expect.poll(() => page.text()).not.toContain(secret)
    await page.click('Rotate … stk_')
    await page.click('Issue the second key')
    await page.sees('Copy the secret. It is shown once.')
    expect(await page.text()).not.toContain(secret)
    await page.click('Forget the secret')
    await page.click('Revoke … stk_')
    await page.click('Revoke the key')
    await page.sees('revoked')
    const root = argv`--root ${app.installation.productRoot}`
    const { items } = await app.svc(argv`buckets keys list uploads ${root}`)
    const states = items.map(({ state }: { state: string }) => state)
    expect(states.toSorted()).toEqual(['active', 'revoked'])
  })

  test('a bucket is archived after a question, and admits nothing then', async () => {
    await page.click('Archive …')
    await page.sees('There is no way back')
    await page.click('Archive the bucket')
    await page.sees('archived')
    await expect.poll(() => page.text()).not.toContain('Issue the key')
    await page.isAccessible('archived')
  })
})
