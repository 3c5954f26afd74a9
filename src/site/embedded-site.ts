/** The site of the documents that this version carries. */
import { SITE_ASSETS, SITE_DOCUMENTS } from './assets.generated.ts'
import { Site } from './site.ts'

export function embeddedSite(topics: Readonly<Record<string, string>>, version: string): Site {
  return new Site({
    version,
    documents: { ...topics, ...SITE_DOCUMENTS },
    assets: SITE_ASSETS,
  })
}
