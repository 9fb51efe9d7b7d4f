package nexmark

// Query 3 selects the states OR, ID and CA; the others give it something to
// leave out.
var places = [...]struct{ city, state string }{
	{"Tucson", "AZ"}, {"Sacramento", "CA"}, {"Oakland", "CA"}, {"Boise", "ID"}, {"Moscow", "ID"},
	{"Salem", "OR"}, {"Eugene", "OR"}, {"Spokane", "WA"}, {"Tacoma", "WA"}, {"Laramie", "WY"},
}

var firstNames = [...]string{"Ada", "Blaise", "Carl", "Emmy", "Grace", "Isaac", "Kurt", "Leonhard", "Mary", "Sofia", "Srinivasa"}

var lastNames = [...]string{"Barrow", "Conduitt", "Fatio", "Flamsteed", "Halley", "Hooke", "Huygens", "Leibniz", "Wallis"}

var adjectives = [...]string{"antique", "blue", "cracked", "gilded", "large", "polished", "rare", "small"}

var items = [...]string{"barometer", "globe", "lens", "mirror", "orrery", "prism", "quadrant", "telescope"}
