/**
 * Generates the OpenAPI document of both origins from the routes. `--check` changes nothing and
 * fails if the document is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openApiText } from '../src/http/openapi/published.ts'

const PATH = 'dist-config/openapi.json'

if (import.meta.main) {
  const path = join(import.meta.dirname, '..', PATH)
  const check = process.argv.includes('--check')
  const text = openApiText()
  if (readFileSync(path, { encoding: 'utf8', flag: 'a+' }) !== text) {
    if (check) process.exitCode = 1
    else writeFileSync(path, text)
    process.stdout.write(`${PATH}${check ? ' is stale: run npm run generate' : ''}\n`)
  }
}
