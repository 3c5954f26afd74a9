/**
 * Generates the OpenAPI document of both origins from the routes. `--check` changes nothing and
 * fails if the document is stale.
 */
import { openApiText } from '../src/http/openapi/published.ts'
import { updateFiles } from './generated-files.ts'

if (import.meta.main) updateFiles({ 'dist-config/openapi.json': openApiText() })
