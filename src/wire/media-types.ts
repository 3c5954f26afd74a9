/** A parameter means the same with quotes and without (RFC 9110, section 8.3.1). */
const JSON_CONTENT = /^application\/json(?:\s*;\s*charset=(?:utf-8|"utf-8"))?$/i

/** Whether a Content-Type is JSON, in no other encoding than UTF-8. */
export function isJson(contentType: string | null): boolean {
  return contentType !== null && JSON_CONTENT.test(contentType)
}
