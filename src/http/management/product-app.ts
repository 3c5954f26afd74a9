/** The part of the application that lifecycle routes use. Mount runs none of them without it. */
import type { Product } from '../../product/product.ts'

export interface ProductApp {
  readonly product: Product
}
