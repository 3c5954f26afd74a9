/** The OpenAPI document of both origins. */
import { KeptForms } from '../../system/compression.ts'
import { JSON_MEDIA_TYPE } from '../../wire/media-types.ts'
import { openApiOperations } from '../../wire/operations/openapi.ts'
import { bind, type Route } from './route.ts'

export interface OpenApiApp {
  /** Returns the OpenAPI document as JSON text, always the same string. */
  openApiDocument(): string
}

/** The document with its compressed forms, since every caller gets it without a credential. */
let kept = { text: '', forms: new KeptForms() }

function formsOf(text: string): KeptForms {
  if (kept.text !== text) kept = { text, forms: new KeptForms() }
  return kept.forms
}

export const openApiRoutes: readonly Route<OpenApiApp>[] = bind(openApiOperations, {
  readOpenApiDocument({ app }) {
    const text = app.openApiDocument()
    return { status: 200, text, contentType: JSON_MEDIA_TYPE, compressed: formsOf(text) }
  },
})
