export const JSON_MEDIA_TYPE = 'application/json'
/** Bytes of any media type, in requests and responses. */
export const ANY_MEDIA_TYPE = '*/*'
/** One JSON document per line (https://github.com/ndjson/ndjson-spec). */
export const LINES_MEDIA_TYPE = 'application/x-ndjson'

/** Quotes do not change the value of a parameter (RFC 9110, section 8.3.1). */
const JSON_CONTENT = /^application\/json(?:\s*;\s*charset=(?:utf-8|"utf-8"))?$/i

/** Returns whether a Content-Type is JSON in UTF-8. */
export function isJson(contentType: string | null): boolean {
  return contentType !== null && JSON_CONTENT.test(contentType)
}
