/** The OpenAPI document of both origins. */
import { JSON_MEDIA_TYPE } from '../../wire/media-types.ts'
import { openApiOperations } from '../../wire/operations/openapi.ts'
import { bind, type Route } from './route.ts'

export interface OpenApiApp {
  /** Returns the OpenAPI document as JSON text, always the same string. */
  openApiDocument(): string
}

export const openApiRoutes: readonly Route<OpenApiApp>[] = bind(openApiOperations, {
  readOpenApiDocument({ app }) {
    return { status: 200, text: app.openApiDocument(), contentType: JSON_MEDIA_TYPE }
  },
})
